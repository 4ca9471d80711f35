"""Sites along sequences of any length."""

"""Honest probabilities, and whether the input is like the training data."""

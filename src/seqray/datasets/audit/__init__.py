"""What would mislead a model in labeled data: leaks, copies, shortcuts."""

"""Which positions drive a prediction, and whether the ranking is reliable."""

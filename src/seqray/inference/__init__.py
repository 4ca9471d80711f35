"""A model and records give probabilities."""

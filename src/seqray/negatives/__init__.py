"""Negatives for a set of positives: how they are made, and what a model learns from them."""

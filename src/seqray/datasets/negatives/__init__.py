"""Negative examples for positive ones: one recipe for each question."""

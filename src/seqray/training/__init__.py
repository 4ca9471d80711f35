"""Labeled data give a model file. Only this package knows Lightning."""

"""Metrics of a model beside those of a floor, and whether the difference is significant."""

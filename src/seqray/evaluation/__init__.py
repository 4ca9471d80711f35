"""Honest figures: predictions against labels, with intervals, beside a floor, by context and similarity."""

"""Which peaks of scores are calls: the same in scans and where the precision to expect is measured."""

MIN_DISTANCE_OF_LOCATORS, MIN_DISTANCE_OF_WINDOWS = 25, 50
"""Smallest distance between two calls of a strand, by kind of model."""
MIN_CALL_SCORE = 1e-3
"""Score below which a peak is never a call: the best calls per kilobase are sought down to this."""

"""Which sequences resemble each other: spaced words find the pairs, alignment measures them."""

"""Which letters a call rests on, by several methods, and whether each is worth believing."""

"""Before training: `audit` finds what would fool a model, `negatives` makes negative examples."""

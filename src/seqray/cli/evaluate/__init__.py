"""`seqray evaluate`: arguments, inputs, data, tables."""

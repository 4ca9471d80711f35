"""`seqray negatives`: arguments, inputs, outputs."""

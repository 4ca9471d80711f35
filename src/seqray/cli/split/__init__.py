"""`seqray split`: arguments, outputs."""

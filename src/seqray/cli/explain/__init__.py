"""`seqray explain`: arguments, outputs, alignments."""

"""`seqray explain`: `arguments`, and the `run`."""

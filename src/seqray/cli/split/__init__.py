"""`seqray split`: `arguments` -> `run` -> `outputs`."""

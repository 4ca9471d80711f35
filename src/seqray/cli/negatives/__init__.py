"""`seqray negatives`: `arguments` -> `inputs` -> `run` -> `outputs`."""

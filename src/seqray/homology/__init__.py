"""Which sequences are related, how data are split without separating relatives, and the proof of a split."""

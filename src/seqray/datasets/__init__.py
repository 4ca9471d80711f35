"""Before training: audits of labeled sequences, and negatives."""

"""What `import seqray` gives: the verbs as functions, the estimator, DataFrames."""

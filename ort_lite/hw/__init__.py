"""hw_matrix.yaml: which hardware runs what, planned, run, cross-loaded and reported."""

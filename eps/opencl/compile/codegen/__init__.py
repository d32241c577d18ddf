"""OpenCL C for each kind of operation."""

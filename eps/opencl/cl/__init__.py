"""OpenCL itself: its C API, and its objects by OpenCL's names."""

"""Tools with the names and options of onnxruntime's, for `python -m`."""

"""Bytes on disk as frozen values: ONNX models, EPContext nodes, payload containers."""

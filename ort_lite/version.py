"""The version of ort_lite, which is the distribution's, and of the interface that it follows."""

VERSION = "0.1.0"
PRODUCER = f"ort_lite {VERSION}"
ONNXRUNTIME_VERSION = "1.31.1"
"""The release of onnxruntime whose Python interface the stand-in has."""

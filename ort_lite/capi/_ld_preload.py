"""Nothing: onnxruntime's wheels load libraries here, and ort_lite has none of its own."""

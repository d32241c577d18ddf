"""Where onnxruntime keeps its binding; code written for it imports names from below."""

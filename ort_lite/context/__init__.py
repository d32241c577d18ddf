"""EPContext models: written, found again, judged and loaded."""

"""The model cache: what a plain model was compiled to, found again by its full identity."""

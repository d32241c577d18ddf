"""From a model to a session that can run: loading, compiling, background compiles, reports."""

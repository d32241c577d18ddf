"""Models in memory: graphs with types, weights by reference, and their descriptions."""

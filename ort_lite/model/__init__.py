"""Models in memory: graphs with types, weights by reference, and what is told about them."""

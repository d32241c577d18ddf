"""Model-to-model rewritings that come before partitioning, each a function of values."""

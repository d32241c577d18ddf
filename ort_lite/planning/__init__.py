"""Which execution provider runs what, and what a session says about it."""

"""Writes model packages: builds, prunes and signs them."""

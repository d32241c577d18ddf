"""Execution providers: which are installed, which devices they have, which ones a session gets."""

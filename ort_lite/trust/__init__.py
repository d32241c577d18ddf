"""Signatures: whose are believed, and whether a model has one of theirs."""

"""Compiled partitions as bytes, written and read back."""

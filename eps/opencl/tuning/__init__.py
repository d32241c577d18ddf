"""Kernel parameters chosen by measuring, and where the measurements are kept."""

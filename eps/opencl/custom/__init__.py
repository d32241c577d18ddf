"""Operators of a user's own, written in OpenCL C."""

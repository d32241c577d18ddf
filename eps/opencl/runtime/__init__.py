"""Devices, programs and launches: what runs a compiled partition."""

"""Tries a device in a child process before nodes are assigned to it."""

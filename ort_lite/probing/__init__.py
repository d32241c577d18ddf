"""Payloads tried in a child process before this one trusts them."""

"""Tuning and checking without a server."""

"""Mutated requests against a real server: `make fuzz-requests`."""

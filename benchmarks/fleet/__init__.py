"""A simulated fleet: a thousand workers on one host, around the real service."""

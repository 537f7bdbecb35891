"""Caches of HTTP answers in their encoded form."""

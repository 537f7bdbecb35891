"""Rewriting that several primitives share."""

"""Primitives that draw decisions."""

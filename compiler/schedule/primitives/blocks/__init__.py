"""Primitives that move, merge and replace blocks."""

"""Primitives that change loops."""

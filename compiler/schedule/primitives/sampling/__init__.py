"""Primitives that sample random decisions."""

"""Primitives that copy buffers, or change where and how they are stored."""

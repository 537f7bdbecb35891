"""Primitives that copy buffers, or change their layout or memory scope."""

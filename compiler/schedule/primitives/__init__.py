"""The primitives: one a file, with its requirements and its rewriting."""

"""The schedule primitives, one a file, each with its requirements and its rewriting."""

"""Index expressions: maps of indices, their inverses, and the boxes that accesses touch."""

"""Parallel loops: the pool of threads, and iterations that threads take on demand."""

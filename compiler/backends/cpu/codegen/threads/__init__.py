"""Parallel loops: the thread pool, and loops whose threads fetch iterations on demand."""

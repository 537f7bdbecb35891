"""Running CPU kernels: loading, the pool of threads, the ceiling of a core."""

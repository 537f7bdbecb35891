"""Running CPU kernels: loading, the thread pool, the peak rate of a core."""

"""Benchmark of tuning over ranges: one artifact of a few kernels against a kernel of each shape."""

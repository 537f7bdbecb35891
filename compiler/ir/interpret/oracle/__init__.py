"""The oracle: what a program computes, by NumPy, to compare kernels with."""

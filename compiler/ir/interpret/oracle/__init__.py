"""The oracle: the expected results of a program by NumPy, to compare kernels with."""

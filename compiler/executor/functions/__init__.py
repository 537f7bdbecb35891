"""Functions of libraries and of Python that kernels call."""

"""Libraries that compute the same as kernels: the reference for a kernel's speed."""

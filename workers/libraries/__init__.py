"""Libraries that compute what kernels do: the reference for a kernel's speed."""

"""Libraries that compute what kernels do: what a kernel's speed is told in terms of."""

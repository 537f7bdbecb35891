"""Running kernels: artifacts, modules, timing, the result of a measurement."""

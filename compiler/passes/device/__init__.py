"""Lower scheduled programs to kernels of a device, and the launches of them."""

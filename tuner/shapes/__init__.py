"""Many shapes of one program: a few kernels that run them all, and the dispatcher between them."""

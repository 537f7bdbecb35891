"""The libraries that kernels are compared with, each in a separate process and environment."""

"""The libraries that kernels are compared with, each in a process and an environment of its own."""

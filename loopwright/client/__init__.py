"""The client of a server: submit jobs, follow them, fetch kernels."""

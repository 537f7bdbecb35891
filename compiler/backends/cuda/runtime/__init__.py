"""Run kernels on the GPUs of this host, by CuPy (extra `[gpu]`)."""

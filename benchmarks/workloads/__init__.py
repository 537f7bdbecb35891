"""The workloads of kernel benchmarks; every library reads them, so they require only NumPy."""

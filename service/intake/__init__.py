"""Read and check the workloads and targets of requests."""

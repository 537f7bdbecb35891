"""Read the workloads and targets that users name."""

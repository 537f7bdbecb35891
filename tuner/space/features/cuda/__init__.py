"""Features of candidates for GPUs, from tables alone, and the estimate of their time."""

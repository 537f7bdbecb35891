"""Best schedules, and the kernels that are built from them."""

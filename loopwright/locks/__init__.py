"""Lock files: the exact schedules of kernels, to build the same kernels again."""

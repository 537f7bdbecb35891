"""Compare kernels with their default schedules, other libraries, and the peak of the machine."""

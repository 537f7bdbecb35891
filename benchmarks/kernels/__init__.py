"""How fast kernels are: against their default schedules, other libraries, and the machine."""

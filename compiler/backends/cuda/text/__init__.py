"""Print device programs as CUDA C++ that a person can read."""

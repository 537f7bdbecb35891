"""Passes that run the threads of a GPU kernel on a CPU."""

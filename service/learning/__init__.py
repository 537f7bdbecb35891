"""Cost models of the store, and what a job begins with."""

"""Cost models of the store, and the warm start of a job."""

"""The health of a worker: its self-test and its canary."""

"""The disposable child, the runner that has it, and what isolates it."""

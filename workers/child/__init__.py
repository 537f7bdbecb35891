"""The disposable child, the runner that owns it, and the sandbox around it."""

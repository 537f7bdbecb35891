"""The processes of the service: how each is wired, started and ended."""

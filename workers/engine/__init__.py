"""The engine: how candidates are spread over worker processes and hosts."""

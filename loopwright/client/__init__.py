"""The client of a server: submit, follow, fetch."""

"""The service: HTTP, the SQL store, the coordinator that drives jobs, and their wiring."""

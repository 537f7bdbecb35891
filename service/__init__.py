"""The service: HTTP, the SQL store, the coordinator that runs jobs, and their wiring."""

"""The processes of the service: their wiring, start and end."""

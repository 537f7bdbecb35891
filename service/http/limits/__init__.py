"""Limits on the resources of a client, and checks of requests before their routes."""

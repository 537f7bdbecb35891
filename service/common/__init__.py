"""Modules that every package of the service may use."""

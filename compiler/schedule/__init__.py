"""Schedules: legal program transformations by name, and the traces that record them."""

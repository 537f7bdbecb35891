"""Deliver events to the addresses that submissions name."""

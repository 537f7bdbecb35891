"""Benchmarks of the service and its pages."""

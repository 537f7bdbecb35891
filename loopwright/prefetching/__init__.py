"""Prefetch: kernels that are ready before the first request."""

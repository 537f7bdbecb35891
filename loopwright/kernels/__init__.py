"""Compiled kernels for users."""

"""Compiled kernels in the hands of users."""

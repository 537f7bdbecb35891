"""Benchmarks of the compiler."""

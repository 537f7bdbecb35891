"""Benchmarks of the tuner: search, cost model, finish."""

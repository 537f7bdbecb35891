"""Benchmarks: each prints a table and writes JSON with its machine, versions, commit and spread."""

"""Benchmarks of one GPU: four commands of at most ten minutes each, `python -m benchmarks.gpu`."""

"""Graphs of tensor-level operators: what a model is before it becomes programs."""

"""Operators by NumPy, in float64 or int64."""

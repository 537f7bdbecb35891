"""Backends: how programs become kernels, one folder a kind of target."""

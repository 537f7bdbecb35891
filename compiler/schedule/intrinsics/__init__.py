"""Tensor intrinsics: descriptions, implementations, and where they match."""

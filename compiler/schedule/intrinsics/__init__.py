"""Tensor intrinsics: descriptions, implementations, and their matching in programs."""

"""Rewriting steps that several primitives share."""

"""The version of the code generator for CPUs."""

from __future__ import annotations

CODEGEN_VERSION = 17
"""Raise it when the code of some program changes: measurements of another version are outdated."""

"""The error of backends."""

from __future__ import annotations


class BuildError(Exception):
    """A program for which no kernel can be built, and why."""

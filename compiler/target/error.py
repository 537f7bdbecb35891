"""The error of targets."""

from __future__ import annotations


class TargetError(ValueError):
    """A target text, or a reported host, that is unknown or can't be used."""

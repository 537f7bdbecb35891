"""The error of targets."""

from __future__ import annotations

from compiler.user_errors import UsageError


class TargetError(UsageError, ValueError):
    """A target text, or a reported host, that is unknown or can't be used."""

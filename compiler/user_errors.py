"""The roots of errors that users cause or can mend: of these, a command shows the message alone.

An error class derives from one of them. So a command that starts imports no part of the project
only to know its errors.
"""

from __future__ import annotations


class UsageError(Exception):
    """What was asked for is invalid: the caller has to change it.

    Attributes:
        advice: What the caller can do, beyond the message; empty if nothing is known.
    """

    advice: str = ""


class NoResultError(Exception):
    """What was asked for is valid, but can't be done here or now."""

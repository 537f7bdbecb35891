"""Warn at the caller's line, however deep in Loopwright the cause is."""

from __future__ import annotations

import sys
import warnings

_OWN = ("loopwright.", "compiler.")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the nearest frame outside of Loopwright."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(_OWN):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def format_age(secs: float) -> str:
    """Return an age in the unit that fits: `40 s`, `3 h`, `12 days`."""
    for unit, length in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if secs >= 2 * length:
            return f"{secs / length:.0f} {unit}"
    return f"{secs:.0f} s"

"""The directory of files that are kept between runs, and that can be made or fetched again."""

from __future__ import annotations

import os
from pathlib import Path


def default_directory() -> Path:
    """Return `$LOOPWRIGHT_CACHE`, or the user's cache directory."""
    if chosen := os.environ.get("LOOPWRIGHT_CACHE"):
        return Path(chosen)
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "loopwright"

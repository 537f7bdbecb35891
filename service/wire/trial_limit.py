"""The limit on the trials of a search, here and on a server. This module imports nothing."""

from __future__ import annotations

MAX_TRIALS = 100_000
"""Hours at tens of trials a second. Chosen."""

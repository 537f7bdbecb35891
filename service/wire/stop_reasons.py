"""Stop reasons of a search, in words for users."""

from __future__ import annotations

STOP_REASON_WORDS = {
    "budget": "trial limit reached",
    "time_budget": "time limit reached",
    "plateau": "no recent improvement",
    "exhausted": "every schedule tried",
}
"""The reasons `stopped` and `cancelled` need no translation. `dashboard/schema.py` generates the
dashboard's copy from this table.
"""


def stop_reason_in_words(reason: str) -> str:
    """Return why a search finished, such as `trial limit reached`."""
    return STOP_REASON_WORDS.get(reason, reason.replace("_", " "))

"""Stop reasons of a search, in words for users."""

from __future__ import annotations

_WORDS = {
    "budget": "trial limit reached",
    "time_budget": "time limit reached",
    "plateau": "no recent improvement",
    "exhausted": "every schedule tried",
}


def stop_reason_in_words(reason: str) -> str:
    """Return why a search finished, such as `trial limit reached`."""
    return _WORDS.get(reason, reason.replace("_", " "))

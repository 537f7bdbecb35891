"""Read the traces of many trials: those of one sketch differ only in their decisions."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from hashlib import sha256
from typing import Any

from compiler.bounded_cache import BoundedCache
from compiler.schedule.error import TraceError
from compiler.schedule.trace.trace import Trace

_MAX_FORMS = 256
"""Forms that are remembered. Chosen."""
_MAX_FORM_CHARS = 1 << 16
"""Longest text of a remembered form: it bounds their memory. Chosen."""

# A quote in a string is escaped, so this matches no part of one.
_DECISION = re.compile(r',\s*"decision":\s*(-?\d+|\[[-\d,\s]*\])')


class TraceReader:
    """Parses traces as `Trace.from_json` does, and remembers the forms that it read.

    A trace is read in full once. Of others that differ only in their decisions, only the decisions
    are read; all else is shared.
    """

    def __init__(self) -> None:
        self._forms: BoundedCache[bytes, Trace] = BoundedCache(_MAX_FORMS)

    def read(self, obj: Any) -> Trace:
        """Parse a trace from a JSON object, which is not trusted.

        Raises:
            TraceError: If it is not a trace; with the position and the problem.
        """
        text, decisions = _split(obj)
        digest = sha256(text.encode()).digest()
        form = self._forms.get(digest)
        if form is not None and (trace := _decided(form, decisions)) is not None:
            return trace
        return self._remember(digest, len(text), Trace.from_json(obj))

    def read_text(self, text: str) -> Trace:
        """Parse a trace from the text of a JSON object, a third of the time of `read`.

        Raises:
            TraceError: See `read`.
            ValueError: If the text is not JSON.
        """
        pieces = _DECISION.split(text)
        others, decisions = "\0".join(pieces[::2]), pieces[1::2]
        digest = sha256(others.encode()).digest()
        if (form := self._forms.get(digest)) is not None:
            with suppress(TraceError):
                return form.with_decisions(json.loads(f"[{','.join(decisions)}]"))
        return self._remember(digest, len(others), Trace.from_json(json.loads(text)))

    def _remember(self, digest: bytes, num_chars: int, trace: Trace) -> Trace:
        if 0 < num_chars <= _MAX_FORM_CHARS:
            self._forms.put(digest, trace)
        return trace


def _split(obj: Any) -> tuple[str, list[Any]]:
    """Return a trace without its decisions, and the decisions; both are empty if it is no trace."""
    try:
        entries = obj["instructions"]
        if not isinstance(entries, list):
            return "", []
        decisions = [entry.get("decision") for entry in entries]
        others = [{k: v for k, v in entry.items() if k != "decision"} for entry in entries]
        return json.dumps({**obj, "instructions": others}), decisions
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return "", []


def _decided(form: Trace, decisions: list[Any]) -> Trace | None:
    """Return a trace with other decisions; None if they do not fit, which `Trace` explains."""
    taken = []
    for instruction, decision in zip(form.instructions, decisions, strict=True):
        if instruction.spec.decides:
            taken.append(decision)
        elif decision is not None:
            return None
    if not all(isinstance(decision, int | list) for decision in taken):
        return None
    try:
        return form.with_decisions(taken)
    except TraceError:
        return None

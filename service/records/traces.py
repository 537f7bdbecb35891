"""Check the traces of many trials: those of one search differ only in their decisions."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, TypeAlias

from pydantic_core import PydanticSerializationError, to_json

from compiler.bounded_cache import BoundedCache
from compiler.schedule.error import TraceError
from compiler.schedule.trace.instruction import Instruction
from compiler.schedule.trace.trace_json import check_decision, read_trace

_MAX_FORMS = 256
_MAX_FORM_BYTES = 1 << 16

_Form: TypeAlias = tuple[Instruction | None, ...]
"""The instructions of traces that differ only in their decisions; None for one without a decision.
"""


class TraceChecker:
    """Refuses an invalid trace, as `Trace.from_json` does, and caches the traces that it read.

    A trace is read in full once. For others that differ only in their decisions, only the decisions
    are checked.
    """

    def __init__(self) -> None:
        self._forms: BoundedCache[bytes, _Form] = BoundedCache(_MAX_FORMS)

    def check(self, trace: dict[str, Any]) -> None:
        """Check the JSON of a trace.

        Raises:
            TraceError: If the trace is invalid; the message says where and why.
        """
        text, decisions = _split(trace)
        digest = sha256(text).digest()
        form = self._forms.get(digest)
        if form is not None and _fit(form, decisions):
            return
        instructions = read_trace(trace)
        if 0 < len(text) <= _MAX_FORM_BYTES:
            form = tuple(i if i.spec.decides else None for i in instructions)
            self._forms.put(digest, form)


def _split(trace: dict[str, Any]) -> tuple[bytes, list[Any]]:
    """Return a trace without its decisions, and the decisions; both are empty if it is no trace."""
    try:
        entries = trace["instructions"]
        if not isinstance(entries, list):
            return b"", []
        decisions = [entry.get("decision") for entry in entries]
        others = [{k: v for k, v in entry.items() if k != "decision"} for entry in entries]
        return to_json({**trace, "instructions": others}), decisions
    except (AttributeError, KeyError, TypeError, PydanticSerializationError):
        return b"", []


def _fit(form: _Form, decisions: list[Any]) -> bool:
    try:
        for instruction, decision in zip(form, decisions, strict=True):
            if instruction is not None:
                check_decision(instruction, decision, "decision")
            elif decision is not None:
                return False
    except TraceError:
        return False
    return True

"""The contract of schedule rules."""

from __future__ import annotations

import re
from typing import Protocol

from tuner.space.rules.sketch_builder import SketchBuilder


class ScheduleRule(Protocol):
    """Schedules one kind of block; all rules together define the design space.

    Rules run one after another over the whole program. A rule extends a draft in place, and returns
    it, alone or with forks for alternative structures. If it does not apply, it returns the draft
    unchanged. A `ScheduleError` of a built-in rule drops the draft.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Return the drafts that replace a draft."""
        ...


class ScheduleRuleError(ValueError):
    """An invalid schedule rule: it raised an error, or its sketch cannot be replayed.

    Attributes:
        rule: The rule's name.
    """

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(f"the schedule rule {rule!r} {reason}")
        self.rule = rule


def rule_name(rule: ScheduleRule) -> str:
    """Return the name of a rule: `packed_products` for a `PackedProducts`."""
    declared = getattr(rule, "name", None)
    return (
        declared
        if isinstance(declared, str)
        else re.sub(r"(?<!^)(?=[A-Z])", "_", type(rule).__name__).lower()
    )

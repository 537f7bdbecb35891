"""The contract of schedule rules."""

from __future__ import annotations

import re
from typing import Protocol

from tuner.space.rules.sketch_builder import SketchBuilder

BUILT_IN_RULES = (
    "auto_inline",
    "whole_reductions",
    "row_chains",
    "unrolled_choices",
    "product_chains",
    "flat_columns",
    "packed_windows",
    "window_rows",
    "packed_products",
    "multi_level_tiling",
    "place_producers",
    "special_blocks",
    "transposed_copies",
    "spatial_blocks",
    "decompose_reductions",
)
"""The names of built-in rules, in the order in which they run; changing them changes features."""


class ScheduleRule(Protocol):
    """A way to schedule a kind of block; all rules together make the design space.

    Rules run one after another over the whole program. A rule extends a draft in place and returns
    it, alone or with forks for alternative structures. A draft that it does not apply to is
    returned unchanged. A `ScheduleError` of a built-in rule drops the draft.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Return the drafts that follow from one."""
        ...


class ScheduleRuleError(ValueError):
    """An invalid schedule rule: it raised, or made a sketch that cannot be replayed.

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

"""Schedule rules that a program adds to the built-in ones, in this process only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tuner.space.registry import built_in_rules, search_space_of
from tuner.space.rules.rule import ScheduleRuleError
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.sketch import Sketch

RuleFunction: TypeAlias = Callable[[SketchBuilder], list[SketchBuilder]]


@dataclass(frozen=True)
class OwnRule:
    """A function as a rule; see `schedule_rule`."""

    name: str
    function: RuleFunction

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Return the drafts that the function returns for one.

        Raises:
            ScheduleRuleError: If the function raises, or returns anything but drafts.
        """
        try:
            returned: object = self.function(draft)
        except Exception as error:
            raise ScheduleRuleError(self.name, f"raised {type(error).__name__}: {error}") from error
        if not isinstance(returned, list | tuple) or not all(
            isinstance(d, SketchBuilder) for d in returned
        ):
            raise ScheduleRuleError(self.name, _not_drafts(returned))
        return list(returned)


def _not_drafts(returned: object) -> str:
    if isinstance(returned, SketchBuilder):
        return "returned a draft: expected a list of drafts, so return [draft]"
    return f"returned {returned!r}: expected a list of drafts, [draft] if it changes nothing"


_RULES: dict[str, OwnRule] = {}


def schedule_rule(function: RuleFunction) -> RuleFunction:
    """Add a rule to the design space of every task of this process, under the function's name.

    It runs after elementwise blocks were inlined, and before the other built-in rules, which skip
    the blocks that it scheduled. A rule of the same name is replaced. The rule takes a draft and
    returns a list: the draft, extended or unchanged, and forks of it for each alternative.

    Raises:
        ScheduleRuleError: If it is not a function, or it has the name of a built-in rule.
    """
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        raise ScheduleRuleError(repr(function), "is not a function of a draft")
    if name in built_in_rules():
        raise ScheduleRuleError(name, "has the name of a built-in rule: choose another one")
    _RULES[name] = OwnRule(name, function)
    return function


def remove_schedule_rule(name: str) -> None:
    """Remove an added rule; do nothing if it does not exist."""
    _RULES.pop(name, None)


def own_rules() -> tuple[OwnRule, ...]:
    """Return the added rules, in the order of their addition."""
    return tuple(_RULES.values())


def finished(name: str, draft: SketchBuilder) -> Sketch:
    """Return the sketch of a draft; replay it with the first and the last option of each knob.

    Args:
        name: An added rule that changed the draft.

    Raises:
        ScheduleRuleError: If it cannot be replayed, or it has a decision without a knob.
    """
    num_decisions = len(draft.schedule.trace.decisions)
    if num_decisions != len(draft.knobs):
        reason = f"made {num_decisions} decisions and {len(draft.knobs)} knobs: use draft.tile,"
        raise ScheduleRuleError(name, f"{reason} draft.choose or draft.cut for each decision")
    try:
        sketch = draft.finish()
        corners = np.array([np.zeros_like(sketch.num_options), sketch.num_options - 1])
        for corner in corners:
            sketch.candidate(corner).trace.apply_to(draft.func)
        search_space_of(draft.target).features(sketch, corners, draft.target)
    except Exception as error:
        reason = f"contributed to the sketch {'/'.join(draft.name)!r}, which cannot be replayed"
        raise ScheduleRuleError(name, f"{reason}: {type(error).__name__}: {error}") from error
    return sketch

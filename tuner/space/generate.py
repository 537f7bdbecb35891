"""Generate the design space of a task by its schedule rules."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from itertools import islice
from typing import TypeAlias
from weakref import WeakValueDictionary

from compiler.bounded_cache import BoundedCache
from compiler.schedule.error import ScheduleError
from tuner.space import stored_spaces
from tuner.space.design_space import SketchSpace
from tuner.space.own_rules import finished, own_rules
from tuner.space.registry import search_space_of
from tuner.space.rules.rule import ScheduleRule, rule_name
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.sketch import Sketch
from tuner.task import Task

MAX_SKETCHES = 8
"""Maximum number of sketches of a task. With more, some hundred trials are too few for each.
Chosen.
"""


_MAX_SPACES = 16
"""Maximum number of design spaces in memory that no search uses: those of a group of tasks and
their relatives. Chosen.
"""
_Key: TypeAlias = tuple[str, str, tuple[str, ...] | None]
_spaces: BoundedCache[_Key, SketchSpace] = BoundedCache(_MAX_SPACES)
_used: WeakValueDictionary[_Key, SketchSpace] = WeakValueDictionary()


def design_space(task: Task, rules: Collection[str] | None = None) -> SketchSpace:
    """Return the non-empty sketches that rules generate for a task; none if no rule applies.

    The default schedule is not part of it, because it has no decisions. The spaces that searches
    use, and those of the last few tasks, are cached, because a job also requires those of its
    relatives. Spaces with user-defined rules are not cached.

    Args:
        rules: The names of the rules that may run; by default all built-in rules, and the rules
            added in this process.

    Raises:
        ValueError: If a rule does not exist.
        ScheduleRuleError: If an added rule raises an error or returns anything but drafts, or if
            its sketch cannot be replayed.
    """
    if own_rules():
        return _design_space(task, rules)
    # The key is the text, because traces depend on the names of blocks.
    key = (task.script, task.target.name, None if rules is None else tuple(sorted(rules)))
    space = _spaces.get(key) or _used.get(key)
    if space is None:
        space = stored_spaces.load(task, rules)
        if space is None:
            space = _design_space(task, rules)
            stored_spaces.save(task, rules, space)
        _used[key] = space
    _spaces.put(key, space)
    return space


def _design_space(task: Task, rules: Collection[str] | None) -> SketchSpace:
    drafts = [SketchBuilder.begin(task.func, task.target)]
    for rule in _chosen(task, rules):
        drafts = _limited([d for draft in drafts for d in _applied(rule, draft)])
    sketches = [_finished(draft) for draft in drafts if draft.knobs]
    space = SketchSpace(sketches, task.target)
    return space.without([i for i in range(len(sketches)) if not space.count(i).number])


def _limited(drafts: list[SketchBuilder]) -> list[SketchBuilder]:
    """Return the first drafts, without those that the filter already empties if there are many.

    Later rules only add decisions and blocks, so they leave such a draft empty. With two products,
    packing each in several ways makes more drafts than the limit, and the first may all be empty.
    """
    if len(drafts) <= MAX_SKETCHES:
        return drafts
    return list(islice(filter(_has_candidates, drafts), MAX_SKETCHES))


def _has_candidates(draft: SketchBuilder) -> bool:
    return not draft.knobs or bool(SketchSpace([draft.finish()], draft.target).count(0).number)


def _chosen(task: Task, names: Collection[str] | None) -> list[ScheduleRule]:
    """Return the rules of these names in the order in which they run."""
    space = search_space_of(task.target)
    rules: list[ScheduleRule] = [*space.first_rules, *own_rules(), *space.rules]
    if names is None:
        return rules
    rules[len(space.first_rules) : len(space.first_rules)] = space.optional_rules
    rule_names = [rule_name(rule) for rule in rules]
    for name in names:
        if name not in rule_names:
            near = difflib.get_close_matches(name, rule_names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(rule_names)}"
            raise ValueError(f"unknown schedule rule {name!r}: {hint}")
    return [rule for rule, name in zip(rules, rule_names, strict=True) if name in names]


def _finished(draft: SketchBuilder) -> Sketch:
    added = {rule.name for rule in own_rules()}
    suspects = [name for name in draft.rules if name in added]
    return finished(suspects[0], draft) if suspects else draft.finish()


def _applied(rule: ScheduleRule, draft: SketchBuilder) -> list[SketchBuilder]:
    before = draft.extent
    try:
        drafts = rule.apply(draft)
    except ScheduleError:
        # A program that the rule does not support gets a smaller space, not a failure.
        return []
    for applied in drafts:
        if applied.extent != before:
            applied.rules = (*applied.rules, rule_name(rule))
    return drafts

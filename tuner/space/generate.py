"""Generate the design space of a task by its schedule rules."""

from __future__ import annotations

from compiler.schedule.error import ScheduleError
from tuner.space.auto_inline import AutoInline
from tuner.space.decompose_reductions import DecomposeReductions
from tuner.space.design_space import DesignSpace
from tuner.space.draft import Draft
from tuner.space.flat_columns import FlatColumns
from tuner.space.multi_level_tiling import MultiLevelTiling
from tuner.space.packed_products import PackedProducts
from tuner.space.packed_windows import PackedWindows
from tuner.space.place_producers import PlaceProducers
from tuner.space.product_chains import ProductChains
from tuner.space.row_chains import RowChains
from tuner.space.rule import ScheduleRule
from tuner.space.spatial_blocks import SpatialBlocks
from tuner.space.special_blocks import SpecialBlocks
from tuner.space.transposed_copies import TransposedCopies
from tuner.space.unrolled_choices import UnrolledChoices
from tuner.space.whole_reductions import WholeReductions
from tuner.space.window_rows import WindowRows
from tuner.task import Task

CPU_RULES: tuple[ScheduleRule, ...] = (
    AutoInline(),
    WholeReductions(),
    RowChains(),
    UnrolledChoices(),
    ProductChains(),
    FlatColumns(),
    PackedWindows(),
    WindowRows(),
    PackedProducts(),
    MultiLevelTiling(),
    PlaceProducers(),
    SpecialBlocks(),
    TransposedCopies(),
    SpatialBlocks(),
    DecomposeReductions(),
)
MAX_SKETCHES = 8
"""Of a task; more would spread the trials too thin."""


def design_space(task: Task, rules: tuple[ScheduleRule, ...] = CPU_RULES) -> DesignSpace:
    """Return the sketches that the rules make of a task, none if no rule applies.

    The default schedule is no part of it: it has no decisions.
    """
    drafts = [Draft.begin(task.func, task.target)]
    for rule in rules:
        drafts = [d for draft in drafts for d in _applied(rule, draft)][:MAX_SKETCHES]
    sketches = [draft.finish() for draft in drafts if draft.knobs]
    return DesignSpace(sketches, task.target)


def _applied(rule: ScheduleRule, draft: Draft) -> list[Draft]:
    try:
        return rule.apply(draft)
    except ScheduleError:
        # A program that the rule did not foresee gets a smaller space, not a failure.
        return []

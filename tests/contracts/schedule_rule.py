"""The contract of `ScheduleRule`. Subclass `ScheduleRuleContract` and define its fixtures."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from compiler import ops
from compiler.ir.core.program import PrimFunc
from compiler.ir.text.printer import script
from compiler.target.target import Target
from tests.targets import level
from tuner.space.rules.rule import ScheduleRule, rule_name
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.sketch import Sketch

PROGRAMS = {
    "matmul": ops.matmul(16, 32, 16),
    "matmul with relu": ops.matmul(16, 32, 16, activation="relu"),
    "conv2d": ops.conv2d(1, 4, 8, 8, 8, 3),
    "softmax": ops.softmax(8, 32),
    "sum": ops.sum(512, 128),
    "relu": ops.relu(96),
    "transpose": ops.transpose(32, 48),
}


def replay(func: PrimFunc, sketch: Sketch) -> list[str]:
    """Return the programs of three points of a sketch, replayed from their traces."""
    rng = np.random.default_rng(0)
    rows = [[rng.integers(len(knob.options)) for knob in sketch.knobs] for _ in range(3)]
    traces = [sketch.candidate(np.array(row, np.int64)).trace for row in rows]
    return [script(trace.apply_to(func).func) for trace in traces]


class ScheduleRuleContract:
    """Tests of a rule after `earlier` ones: override both fixtures.

    A rule for another kind than CPUs has its own `target`.
    """

    target: ClassVar[Target] = level(3, num_cores=2)

    @pytest.fixture
    def rule(self) -> ScheduleRule:
        raise NotImplementedError

    @pytest.fixture
    def earlier(self) -> list[ScheduleRule]:
        """Return the rules that run before this one."""
        return []

    @pytest.fixture(params=PROGRAMS)
    def func(self, request: pytest.FixtureRequest) -> PrimFunc:
        return PROGRAMS[request.param]

    def drafts(self, earlier: list[ScheduleRule], func: PrimFunc) -> list[SketchBuilder]:
        drafts = [SketchBuilder.begin(func, self.target)]
        for rule in earlier:
            drafts = [after for draft in drafts for after in rule.apply(draft)]
        return drafts

    def test_its_name_is_a_word(self, rule: ScheduleRule) -> None:
        assert rule_name(rule).isidentifier()

    def test_it_returns_drafts_of_the_same_program(
        self, rule: ScheduleRule, earlier: list[ScheduleRule], func: PrimFunc
    ) -> None:
        for draft in self.drafts(earlier, func):
            after = rule.apply(draft)
            assert after
            assert all(one.func is func and one.target == self.target for one in after)
            assert len({id(one) for one in after}) == len(after)

    def test_equal_drafts_give_equal_sketches_that_replay(
        self, rule: ScheduleRule, earlier: list[ScheduleRule], func: PrimFunc
    ) -> None:
        programs = []
        for _ in range(2):
            after = [d for draft in self.drafts(earlier, func) for d in rule.apply(draft)]
            sketches = [draft.finish() for draft in after if draft.knobs]
            programs.append([(sketch.name, replay(func, sketch)) for sketch in sketches])
        assert programs[0] == programs[1]

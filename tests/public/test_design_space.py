"""`lw.design_space` and rules of one's own, as the page about them says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopwright as lw

PAGE = (Path(__file__).parents[2] / "docs" / "design_space.md").read_text(encoding="utf-8")
TARGET = "cpu -mcpu=x86-64-v3 -num-cores=1"


@pytest.fixture(autouse=True)
def _no_rule_is_left() -> Iterator[None]:
    yield
    for name in ("few_rows", "broken", "samples"):
        lw.remove_schedule_rule(name)


@pytest.fixture
def page() -> dict[str, Any]:
    """What the program of the page leaves behind."""
    names: dict[str, Any] = {}
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(program, names)
    return names


def test_the_rule_of_the_page_makes_a_kernel_that_is_correct(page: dict[str, Any]) -> None:
    (sketch,) = page["space"].sketches
    assert (sketch.name, sketch.rules) == ("few_rows", ("few_rows",))
    rows = np.random.default_rng(0).standard_normal((64, 256), np.float32)
    out = np.full_like(rows, np.nan)
    page["kernel"](rows, out)
    assert np.array_equal(out, np.maximum(rows, 0))


def test_an_added_rule_runs_beside_the_others_until_it_is_taken_back(page: dict[str, Any]) -> None:
    func = page["space"].func
    names = [sketch.name for sketch in lw.design_space(func, TARGET).sketches]
    assert names == ["few_rows", "spatial"]
    lw.remove_schedule_rule("few_rows")
    assert [sketch.name for sketch in lw.design_space(func, TARGET).sketches] == ["spatial"]
    with pytest.raises(ValueError, match="unknown schedule rule 'few_rows'"):
        lw.design_space(func, TARGET, rules=["few_rows"])


@pytest.mark.parametrize(
    ("heading", "target"), [("Built-in rules", TARGET), ("Rules for GPUs", "cuda -gpu=h200")]
)
def test_the_page_names_every_built_in_rule(heading: str, target: str) -> None:
    with pytest.raises(ValueError, match="unknown schedule rule 'x': known: ") as refused:
        lw.design_space("relu:8", target, rules=["x"])
    names = str(refused.value).split("known: ")[1].split(", ")
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == names


def test_a_space_prints_its_sketches_and_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    space = lw.design_space("relu:64,256", TARGET)
    assert repr(space) == f"<DesignSpace of relu on {TARGET}: 32 schedules; spatial>"
    space.show()
    printed = capsys.readouterr().out
    assert "spatial_blocks" in printed
    (sketch,) = space.sketches
    assert sketch.knobs == (
        "i0 to i1 of B, part 1: one of 1, 2, 3, 4: 4 options",
        "i0 to i1 of B, part 3: one of 64, 32 ... 40: 8 options",
    )
    assert all(word in printed for word in ("i0 to i1 of B", "one of 1, 2, 3, 4"))
    assert (sketch.num_decisions, sketch.num_schedules, sketch.is_exact) == (32, 32, True)


def test_traces_are_enumerated_or_drawn() -> None:
    space = lw.design_space("relu:64,256", TARGET)
    every = {trace.key() for trace in space.enumerate(0)}
    assert len(every) == 32
    assert {trace.key() for trace in space.sample(99)} == every
    large = lw.design_space("matmul:512,512,512", TARGET, rules=["packed_products"])
    drawn = large.sample(8, seed=1)
    assert len({trace.key() for trace in drawn}) == 8
    assert [t.key() for t in large.sample(8, seed=1)] == [t.key() for t in drawn]
    with pytest.raises(IndexError, match="no sketch 9"):
        large.sample(1, sketch=9)
    for senseless in (-1, 0, 32_769):
        with pytest.raises(
            ValueError, match=f"cannot draw {senseless} traces: expected 1 to 32,768"
        ):
            large.sample(senseless)
    whole = lw.design_space("conv2d:1,16,28,28,32,3", TARGET, rules=["multi_level_tiling"])
    assert not whole.is_exact
    with pytest.raises(ValueError, match="sample it"):
        whole.enumerate(0)


def test_rules_are_chosen_by_their_names() -> None:
    tiling = ["multi_level_tiling", "decompose_reductions"]
    space = lw.design_space("matmul:64,64,64", TARGET, rules=tiling)
    assert [sketch.name for sketch in space.sketches] == ["direct", "cached"]
    assert all(sketch.rules == tuple(tiling) for sketch in space.sketches)
    with pytest.raises(ValueError, match="did you mean 'packed_products'"):
        lw.design_space("matmul:64,64,64", TARGET, rules=["packed_product"])


def _raises(draft: lw.SketchBuilder) -> list[lw.SketchBuilder]:
    raise KeyError("nothing there")


def _returns_nothing(draft: lw.SketchBuilder) -> list[lw.SketchBuilder]:
    return None  # type: ignore[return-value]


def _decides_alone(draft: lw.SketchBuilder) -> list[lw.SketchBuilder]:
    draft.schedule.sample_categorical([1, 2], [0.5, 0.5])
    draft.choose([1, 2])
    return [draft]


def _is_refused(draft: lw.SketchBuilder) -> list[lw.SketchBuilder]:
    (loop,) = draft.loops("B")
    draft.schedule.split(loop, [0, 8])
    return [draft]


def _notes_wrongly(draft: lw.SketchBuilder) -> list[lw.SketchBuilder]:
    facts = draft.block_facts()["B"]
    draft.choose([1, 2])
    draft.note(facts, {0: {6: 7}}, rest={})
    return [draft]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (_raises, "raised KeyError: 'nothing there'"),
        (_returns_nothing, "returned None: expected a list of drafts"),
        (_decides_alone, "made 3 decisions and 2 knobs"),
        (_is_refused, "raised ScheduleError"),
        (_notes_wrongly, "contributed to the sketch 'spatial', which cannot be replayed"),
    ],
)
def test_a_rule_that_is_wrong_is_named(function: Any, reason: str) -> None:
    def broken(draft: lw.SketchBuilder) -> list[lw.SketchBuilder]:
        drafts: list[lw.SketchBuilder] = function(draft)
        return drafts

    lw.schedule_rule(broken)
    with pytest.raises(lw.ScheduleRuleError, match="schedule rule 'broken'") as refused:
        lw.design_space("relu:64", TARGET)
    assert reason in str(refused.value)
    assert refused.value.rule == "broken"
    assert lw.design_space("relu:64", TARGET, rules=["spatial_blocks"]).num_schedules > 0


def test_a_sketch_without_nests_has_candidates_that_differ_in_features() -> None:
    def samples(draft: lw.SketchBuilder) -> list[lw.SketchBuilder]:
        (loop,) = draft.loops("B")
        length, _ = draft.choose([2, 4, 8])
        draft.schedule.split(loop, [None, length])
        draft.scheduled.add("B")
        return [draft]

    lw.schedule_rule(samples)
    func = lw.ops.from_spec("relu:64")
    assert lw.design_space(func, TARGET).num_schedules == 3
    from tuner.space.generate import design_space  # noqa: PLC0415 (what a user does not see)
    from tuner.task import Task  # noqa: PLC0415

    space = design_space(Task(func, lw.Target(TARGET)))
    rows = space.enumerate(0)
    assert len(np.unique(space.features(0, rows), axis=0)) == len(rows) == 3


def test_a_rule_may_not_take_a_built_in_name() -> None:
    def spatial_blocks(draft: lw.SketchBuilder) -> list[lw.SketchBuilder]:
        return [draft]

    with pytest.raises(lw.ScheduleRuleError, match="name of a built-in rule"):
        lw.schedule_rule(spatial_blocks)


def test_a_program_that_is_not_legal_has_no_space() -> None:
    func = lw.ops.conv2d(1, 16, 8, 8, 16, 3, 1, 1).with_attr("error_budget", 5.0)
    with pytest.raises(
        lw.VerifyError, match=r"error_budget is 5\.0: expected a number from 0 to 1"
    ):
        lw.design_space(func, TARGET)

"""Recorded sets: what is read is what was written, and a replay asks for nothing else."""

import json
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compiler import ops
from compiler.runtime.measurement import ErrorKind
from compiler.target.target import Target
from tests.contracts.measurer import MeasurerContract
from tuner.candidate import Candidate, default_candidate
from tuner.replay.packaged import FOLDER
from tuner.replay.play import play, trials_to
from tuner.replay.recorded_set import (
    FORMAT_VERSION,
    SUFFIX,
    RecordedSet,
    RecordedSetError,
    read_sets,
)
from tuner.search.random import Random
from tuner.search.searcher import Searcher
from tuner.space.design_space import Point
from tuner.space.generate import design_space
from tuner.task import Task

TARGET = Target("cpu -mcpu=x86-64-v3 -num-cores=1")


@pytest.fixture(scope="module")
def recorded() -> RecordedSet:
    """A set with invented times, of which one failed."""
    func = ops.matmul(8, 16, 8)
    space = design_space(Task(func, TARGET))
    rng = np.random.default_rng(0)
    rows = [space.draw(sketch, 20, rng) for sketch in range(len(space.sketches))]
    secs = [rng.uniform(1e-5, 1e-3, len(own)).round(9) for own in rows]
    secs[-1][3] = np.inf
    failed = Point(len(rows) - 1, tuple(rows[-1][3].tolist()))
    return RecordedSet(
        name="matmul_8x16x8",
        operator="matmul",
        script=func.script(),
        target=TARGET.name,
        sketches=space.sketches,
        rows=tuple(rows),
        is_drawn=tuple(np.arange(len(own)) % 2 == 0 for own in rows),
        is_kept=tuple(np.arange(len(own)) % 3 > 0 for own in rows),
        secs=tuple(secs),
        errors={failed: ErrorKind.WRONG_RESULT},
        provenance={"commit": "abc"},
    )


def test_what_is_read_is_what_was_written(recorded: RecordedSet, tmp_path: Path) -> None:
    recorded.write(tmp_path)
    (read,) = read_sets(tmp_path)
    assert read.sketches == recorded.sketches
    assert read.by_point == pytest.approx(recorded.by_point)
    assert read.errors == recorded.errors
    assert read.task.workload_key == recorded.task.workload_key
    np.testing.assert_array_equal(read.samples().features, recorded.samples().features)
    for mine, theirs in ((read.is_drawn, recorded.is_drawn), (read.is_kept, recorded.is_kept)):
        assert [m.tolist() for m in mine] == [t.tolist() for t in theirs]
    assert without_arrays(read) == without_arrays(recorded)


def without_arrays(recorded: RecordedSet) -> RecordedSet:
    """Return all else of a set: arrays do not compare."""
    return replace(recorded, sketches=(), rows=(), is_drawn=(), is_kept=(), secs=())


def test_a_part_of_a_set_holds_what_is_marked(recorded: RecordedSet) -> None:
    for part, masks in ((recorded.drawn, recorded.is_drawn), (recorded.kept, recorded.is_kept)):
        pairs = zip(recorded.rows, masks, strict=True)
        marked = [row.tolist() for rows, mask in pairs for row in rows[mask]]
        assert [list(point.choices) for point in part.by_point] == marked
        assert all(part.by_point[p] == recorded.by_point[p] for p in part.by_point)
        assert part.errors.keys() == recorded.errors.keys() & part.by_point.keys()
        assert len(part.samples().run_secs) == len(marked)


def test_a_set_needs_no_rules(recorded: RecordedSet, tmp_path: Path) -> None:
    """Its candidates are those of the day that it was recorded."""
    read = RecordedSet.read(recorded.write(tmp_path))
    before = [recorded.space.candidate(point).key for point in recorded.by_point]
    assert [read.space.candidate(point).key for point in read.by_point] == before


def test_measuring_answers_with_what_was_recorded(recorded: RecordedSet) -> None:
    points = list(recorded.by_point)
    candidates = [recorded.space.candidate(point) for point in points]
    found = dict(recorded.measure(recorded.task, candidates, None))
    assert [found[i].best_secs for i in range(len(points))] == list(recorded.by_point.values())
    assert [f.error for f in found.values() if not f.ok] == [ErrorKind.WRONG_RESULT]


def test_what_was_not_recorded_is_not_invented(recorded: RecordedSet) -> None:
    with pytest.raises(LookupError, match=r"is not among the .* recorded of matmul_8x16x8"):
        list(recorded.measure(recorded.task, [default_candidate()], None))


def test_the_space_holds_what_was_recorded_only(recorded: RecordedSet) -> None:
    rng = np.random.default_rng(1)
    for sketch, rows in enumerate(recorded.rows):
        everything = recorded.sketches[sketch].draw(4000, rng)
        known = {tuple(row) for row in rows.tolist()}
        assert {tuple(r) for r in recorded.space.keep(sketch, everything).tolist()} <= known
        assert {tuple(r) for r in recorded.space.draw(sketch, 99, rng).tolist()} == known
        np.testing.assert_array_equal(recorded.space.keep(sketch, rows), rows)


@pytest.mark.parametrize("content", [b"no set", lzma.compress(b"{"), lzma.compress(b'{"a": 1}')])
def test_what_is_no_recorded_set_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"broken{SUFFIX}"
    path.write_bytes(content)
    with pytest.raises(RecordedSetError, match="broken"):
        RecordedSet.read(path)


def test_another_version_is_refused(recorded: RecordedSet, tmp_path: Path) -> None:
    path = recorded.write(tmp_path)
    content = json.loads(lzma.decompress(path.read_bytes()))
    path.write_bytes(lzma.compress(json.dumps({**content, "version": 99}).encode()))
    with pytest.raises(RecordedSetError, match=f"of version {FORMAT_VERSION}"):
        RecordedSet.read(path)


def test_a_curve_rises_to_the_best_of_the_set(recorded: RecordedSet) -> None:
    search = Searcher(Random, recorded.space, 0, None, task_key=recorded.task.key)
    curve = play(recorded, search, len(recorded) + 20)
    assert (np.diff(curve) >= 0).all()
    assert curve[0] == 0, "the default schedule is in no set"
    assert curve[-1] == 1
    assert trials_to(curve, 1.0) <= len(recorded)
    assert trials_to(curve[:1], 0.5) == np.inf


def test_the_sets_of_the_project_are_small_and_right() -> None:
    files = sorted(FOLDER.glob(f"*{SUFFIX}"))
    assert files
    assert sum(path.stat().st_size for path in files) < 5 << 20
    recorded = RecordedSet.read(files[0])
    assert {"commit", "toolchain", "machine", "at"} <= recorded.provenance.keys()
    assert np.isfinite(recorded.best_secs)
    assert len(recorded.drawn)
    assert len(recorded.kept)


class TestMeasurer(MeasurerContract):
    """A `RecordedSet` keeps the contract of measurers."""

    @pytest.fixture
    def measurer(self, recorded: RecordedSet) -> RecordedSet:
        return recorded

    @pytest.fixture
    def task(self) -> Task:
        return Task(ops.matmul(8, 16, 8), TARGET)

    @pytest.fixture
    def candidates(self, recorded: RecordedSet) -> list[Candidate]:
        return [recorded.space.candidate(point) for point in list(recorded.by_point)[:3]]

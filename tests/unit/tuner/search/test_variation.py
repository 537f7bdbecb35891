"""Selection, crossover and mutation of rows of choices."""

from __future__ import annotations

import numpy as np
import pytest

from tests.contracts.proposer import new_state
from tuner.search.variation import crossed, mutated, one_apart, selected
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch


@pytest.fixture
def sketch() -> Sketch:
    return new_state().space.sketches[0]


def draw(sketch: Sketch, num: int) -> Ints:
    rng = np.random.default_rng(0)
    columns = [rng.integers(len(knob.options), size=num) for knob in sketch.knobs]
    return np.stack(columns, axis=1).astype(np.int64)


def test_better_rows_become_parents_more_often() -> None:
    rows = np.arange(64, dtype=np.int64)[:, None]
    scores = -np.arange(64.0)
    parents = selected(rows, scores, 4096, np.random.default_rng(0))[:, 0]
    counts = np.bincount(parents, minlength=64)
    assert counts[0] > counts[8] > counts[32]
    assert counts[:8].sum() > 4096 * 0.5  # 1 - 1/e of the chance lies in the first eighth


def test_a_child_has_each_knob_from_one_of_its_parents(sketch: Sketch) -> None:
    parents = draw(sketch, 256)
    children = crossed(parents, np.random.default_rng(1))
    for knob in range(parents.shape[1]):
        assert set(children[:, knob]) <= set(parents[:, knob])
    assert (children == parents).all(axis=1).mean() > 0.4


def test_a_mutation_changes_one_knob_at_most_and_stays_legal(sketch: Sketch) -> None:
    rows = draw(sketch, 512)
    before = rows.copy()
    children = mutated(sketch, rows, np.random.default_rng(2))
    np.testing.assert_array_equal(rows, before)
    changed = (children != rows).sum(axis=1)
    assert changed.max() == 1
    assert changed.mean() > 0.3
    limits = [len(knob.options) for knob in sketch.knobs]
    assert (children >= 0).all()
    assert (children < limits).all()


def test_neighbours_are_all_rows_that_differ_in_one_knob(sketch: Sketch) -> None:
    row = draw(sketch, 1)[0]
    rows = one_apart(sketch, row)
    assert len(rows) == sum(len(knob.options) - 1 for knob in sketch.knobs)
    assert ((rows != row).sum(axis=1) == 1).all()
    assert len(np.unique(rows, axis=0)) == len(rows)

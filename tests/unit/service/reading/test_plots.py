"""What plots are told, against the same in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from compiler.runtime.measurement import ErrorKind
from service.reading.curve import curve
from service.reading.decisions import chosen, decisions, importance
from service.reading.model_value import model_value
from service.reading.summary import summary
from service.reading.thinning import thin
from service.store.jobs.jobs import JobRow
from service.store.trials.trial_columns import TrialColumns, joined, of_rows
from service.wire.readings import ModelOrigin
from tuner.loop.progress import MAX_POINTS, SPARKLINE_POINTS, add_point, sparkline

Row = dict[str, Any]


def numbered(made: Sequence[Row]) -> list[Row]:
    number, found = -1, []
    for row in made:
        number += row["gap"]
        found.append({**row, "number": number, "round": number // 8})
    return found


times = st.one_of(st.none(), st.sampled_from([0.5, 1.0, 2.0]), st.floats(1e-6, 10))
rows = st.lists(
    st.fixed_dictionaries(
        {
            "best": times,
            "kind": st.sampled_from(ErrorKind),
            "sketch": st.sampled_from("abc"),
            "predicted": st.one_of(st.none(), st.integers(-3, 3)),
            "gap": st.integers(1, 3),
            "at": st.integers(0, 59),
        }
    ),
    max_size=40,
).map(numbered)


def columns(made: Sequence[Row], *, chunk: int = 7) -> TrialColumns:
    narrow = [
        (
            row["number"], row["round"], row["sketch"],
            row["kind"].value if row["best"] is None else None, row["best"], row["predicted"],
            0.25, 0.5, 1.0, f"2026-01-01 00:00:{row['at']:02d}.500000",
        )
        for row in made
    ]  # fmt: skip
    return joined(of_rows(narrow[i : i + chunk]) for i in range(0, len(narrow), chunk))


def improvements(made: Sequence[Row]) -> list[Row]:
    best, found = math.inf, []
    for row in made:
        if row["best"] is not None and row["best"] < best:
            best = row["best"]
            found.append(row)
    return found


@given(made=rows)
def test_a_curve_has_every_improvement_and_the_last_trial(made: list[Row]) -> None:
    started = columns(made).at.min() - 0.5 if made else 0.0
    shown = curve(columns(made), float(started), 1000)
    steps = improvements(made)
    expected = [(row["number"], row["best"]) for row in steps]
    if steps and steps[-1] is not made[-1]:
        expected.append((made[-1]["number"], steps[-1]["best"]))
    assert list(zip(shown.number, shown.best_secs, strict=True)) == expected
    latest = {row["number"]: max(r["at"] for r in made[: i + 1]) for i, row in enumerate(made)}
    first = min((row["at"] for row in made), default=0)
    assert list(shown.secs) == [latest[n] - first + 0.5 for n in shown.number]


@given(made=rows, points=st.integers(2, 60))
def test_thinning_keeps_what_stands_out_and_no_more_than_asked(
    made: list[Row], points: int
) -> None:
    kept = thin(columns(made), points).tolist()
    assert kept == sorted(set(kept))
    assert len(kept) == min(points, len(made))
    outcomes = ["ok" if row["best"] is not None else row["kind"] for row in made]
    special = {made.index(row) for row in improvements(made)}
    special |= {outcomes.index(kind) for kind in outcomes}
    special |= {0, len(made) - 1} if made else set()
    if len(special) <= points:
        assert special <= set(kept)


@given(made=rows)
def test_a_summary_counts_as_plain_python_does(made: list[Row]) -> None:
    job = JobRow(active_secs=0.0, started_at=None, finished_at=None)
    failed = [row for row in made if row["best"] is None]
    messages = {row["number"]: str(row["number"]) for row in made}
    found = summary(columns(made), job, messages, ModelOrigin.NOTHING)
    kinds = Counter(row["kind"].value for row in failed)
    assert {f.kind: f.count for f in found.failures} == kinds
    for failure in found.failures:
        first = next(row["number"] for row in failed if row["kind"] == failure.kind)
        assert (failure.first_number, failure.first_message) == (first, str(first))
    assert {s.name: s.count for s in found.sketches} == Counter(row["sketch"] for row in made)
    for sketch in found.sketches:
        right = [r["best"] for r in made if r["sketch"] == sketch.name and r["best"] is not None]
        assert (sketch.num_right, sketch.best_secs) == (len(right), min(right, default=None))
    assert found.num_trials == len(made)
    assert (found.time.build, found.time.time) == (0.25 * len(made), 1.0 * len(made))


@given(made=rows)
def test_time_in_which_nothing_was_measured(made: list[Row]) -> None:
    job = JobRow(active_secs=1000.0, started_at=None, finished_at=None)
    halves = {half for row in made for half in range(4 * row["at"] - 5, 4 * row["at"] + 2)}
    found = summary(columns(made), job, {}, ModelOrigin.NOTHING)
    assert found.time.propose == pytest.approx(1000.0 - len(halves) / 4)


@given(made=rows)
def test_the_model_is_judged_round_by_round(made: list[Row]) -> None:
    correlations, hits, weights = [], [], []
    for number in {row["round"] for row in made}:
        scored = [r for r in made if r["round"] == number and r["predicted"] is not None]
        scores = [row["predicted"] for row in scored]
        speeds = [-(math.inf if row["best"] is None else row["best"]) for row in scored]
        if len(scored) < 4 or len(set(scores)) == 1 or len(set(speeds)) == 1:
            continue
        ranks = [sorted(set(speeds)).index(speed) for speed in speeds]
        correlations.append(spearmanr(scores, ranks).statistic)
        weights.append(len(scored))
        quarter = len(scored) // 4
        by_score = sorted(range(len(scored)), key=lambda i: (scores[i], i))[-quarter:]
        by_speed = sorted(range(len(scored)), key=lambda i: (speeds[i], i))[-quarter:]
        hits.append(len({*by_score} & {*by_speed}) / quarter)
    found = model_value(columns(made))
    assert (found.num_rounds, found.num_trials) == (len(weights), sum(weights))
    if weights:
        assert found.rank_correlation == pytest.approx(np.average(correlations, weights=weights))
        assert found.top_quarter == pytest.approx(np.average(hits, weights=weights))
    else:
        assert found.rank_correlation is None


@given(made=rows, cut=st.integers(0, 40))
def test_columns_put_together_are_those_read_at_once(made: list[Row], cut: int) -> None:
    whole = columns(made)
    # Columns of some of the trials name their sketches and outcomes otherwise than those of all.
    grown = joined([columns(made[:cut]), columns(made[cut:])])
    assert (grown.sketches, grown.outcomes) == (whole.sketches, whole.outcomes)
    for (name, left), (_, right) in zip(grown.arrays(), whole.arrays(), strict=True):
        np.testing.assert_array_equal(left, right, err_msg=name)


@given(st.lists(st.floats(1e-6, 1.0), max_size=300))
def test_a_sparkline_is_the_best_so_far_at_even_places(secs: list[float]) -> None:
    points: list[tuple[int, float]] = []
    best = [min(secs[: n + 1]) for n in range(len(secs))]
    for number, now in enumerate(secs, 1):
        points = add_point(points, number, now)
    assert len(points) <= MAX_POINTS
    shown = sparkline(points, len(secs))
    assert len(shown) == min(len(secs), SPARKLINE_POINTS)
    assert list(shown) == sorted(shown, reverse=True)
    if secs:
        assert (shown[0], shown[-1]) == (secs[0], best[-1])
    if 0 < len(secs) <= SPARKLINE_POINTS:
        assert list(shown) == best


def test_importance_is_all_or_nothing_where_that_is_so() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(4, size=400).astype(float)
    assert importance(values, values) == pytest.approx(1.0)
    by_chance = importance(values, rng.normal(size=400))
    assert by_chance is not None
    assert by_chance < 0.03
    assert importance(np.zeros(400), values) == 0.0
    assert importance(values[:3], values[:3]) is None


def test_of_many_trials_the_fastest_and_an_even_choice_are_shown() -> None:
    secs = np.random.default_rng(0).uniform(1, 2, 5000).tolist()
    made = numbered([{"best": s, "kind": ErrorKind.CRASH, "sketch": "a", "predicted": None,
                      "gap": 1, "at": 0} for s in secs])  # fmt: skip
    places, spread = chosen(columns(made), "a")
    assert len(places) <= 2000
    assert set(np.argsort(secs)[:500]) <= set(places.tolist())
    assert np.diff(places[spread]).max() <= 5
    shown = decisions(columns(made), "a", ("a",), ["width"], {n: [8] for n in range(5000)})
    assert shown.is_sampled
    assert (shown.num_trials, shown.decisions[0].values) == (5000, (8.0,))


def test_a_trial_with_other_decisions_under_the_same_name_is_left_out() -> None:
    row = {
        "best": 1.0,
        "kind": ErrorKind.CRASH,
        "sketch": "a",
        "predicted": None,
        "gap": 1,
        "at": 0,
    }
    made = numbered([{**row, "gap": 1, "at": 0}] * 3)
    decided = {0: [2, 4], 1: [8], 2: [4, 2]}
    shown = decisions(columns(made), "a", ("a",), ["i, part 1", "i, part 2"], decided)
    assert (shown.number, shown.rows) == ((0, 2), ((2.0, 4.0), (4.0, 2.0)))
    none_fit = decisions(columns(made), "a", ("a",), ["i", "j", "k"], decided)
    assert (none_fit.number, none_fit.rows) == ((), ())
    assert [each.values for each in none_fit.decisions] == [(), (), ()]

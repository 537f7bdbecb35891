"""Which trials are selected, and where they stand in their rounds, against plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.reading.queries import SelectionQuery
from service.reading.selection import selected, standings
from service.wire.readings import TrialOutcome
from tests.unit.service.reading.test_plots import Row, columns, rows

SORTS = get_args(SelectionQuery.model_fields["sort"].annotation)
shares = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))
times = st.one_of(st.none(), st.sampled_from([0.5, 1.0, 2.0]))
queries = st.fixed_dictionaries(
    {
        "from_number": st.integers(0, 60),
        "to_number": st.one_of(st.none(), st.integers(0, 60)),
        "sketch": st.sampled_from([None, "a", "b", "unheard of"]),
        "outcome": st.sampled_from([None, *TrialOutcome]),
        "from_secs": times,
        "to_secs": times,
        "from_predicted_percentile": shares,
        "to_predicted_percentile": shares,
        "from_relative_speed": shares,
        "to_relative_speed": shares,
        "sort": st.sampled_from(SORTS),
    }
)


def standing(made: Sequence[Row], row: Row) -> tuple[float | None, float | None]:
    """Return what share of its round a trial was predicted to beat, and its relative speed."""
    others = [r for r in made if r["round"] == row["round"] and r["predicted"] is not None]
    if row["predicted"] is None or len(others) < 2:
        return None, None
    ranked = sorted(others, key=lambda r: (r["predicted"], r["number"]))
    fastest = min(r["best"] or math.inf for r in others)
    speed = fastest / row["best"] if row["best"] is not None else 0.0
    place = ranked.index(row) / (len(others) - 1)
    return float(np.round(place, 4)), float(np.round(speed, 4))


def is_within(value: float | None, low: float | None, high: float | None) -> bool:
    if value is None:
        return low is None and high is None
    return (low is None or value >= low) and (high is None or value <= high)


def outcome(row: Row) -> str:
    return "ok" if row["best"] is not None else row["kind"].value


def meets(made: Sequence[Row], row: Row, asked: dict[str, Any]) -> bool:
    place, speed = standing(made, row)
    return (
        is_within(row["number"], asked["from_number"], asked["to_number"])
        and asked["sketch"] in (None, row["sketch"])
        and asked["outcome"] in (None, outcome(row))
        and is_within(row["best"], asked["from_secs"], asked["to_secs"])
        and is_within(place, asked["from_predicted_percentile"], asked["to_predicted_percentile"])
        and is_within(speed, asked["from_relative_speed"], asked["to_relative_speed"])
    )


def key(row: Row, by: str) -> Any:
    return {**row, "best_secs": row["best"], "outcome": outcome(row)}[by]


@given(made=rows, asked=queries)
def test_all_trials_that_meet_the_conditions_are_there_in_order(
    made: list[Row], asked: dict[str, Any]
) -> None:
    found = [made[i] for i in selected(columns(made), SelectionQuery(**asked))]
    expected = [row for row in made if meets(made, row, asked)]
    by, falls = asked["sort"].removeprefix("-"), asked["sort"].startswith("-")
    known = [row for row in expected if key(row, by) is not None]
    known.sort(key=lambda row: row["number"])
    known.sort(key=lambda row: key(row, by), reverse=falls)  # stable either way
    assert found == known + [row for row in expected if key(row, by) is None]


@given(made=rows, data=st.data())
def test_a_trial_stands_in_its_round_whatever_is_asked_for_beside_it(
    made: list[Row], data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(range(len(made))))) if made else []
    place, speed = standings(columns(made), np.array(chosen, np.int64))
    for at, index in enumerate(chosen):
        expected = standing(made, made[index])
        if expected == (None, None):
            assert np.isnan(place[at])
            assert np.isnan(speed[at])
        else:
            assert (place[at], speed[at]) == pytest.approx(expected, abs=2e-4)

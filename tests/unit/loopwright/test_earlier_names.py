"""Keyword arguments are accepted under their earlier names, with a warning at the caller's line."""

from __future__ import annotations

from typing import Any

import pytest

from loopwright.earlier_names import takes_earlier_names, with_current_names


@takes_earlier_names
def search(workload: str, *, max_trials: int = 200, seed: int = 0) -> tuple[str, int, int]:
    return workload, max_trials, seed


@takes_earlier_names
def count(*, trials: int) -> int:
    return trials


def test_an_earlier_name_is_accepted_with_a_warning() -> None:
    options: dict[str, Any] = {"trials": 3}
    with pytest.warns(DeprecationWarning, match=r"^search\(trials=...\) is now") as warned:
        assert search("relu:8", seed=1, **options) == ("relu:8", 3, 1)
    assert [one.filename for one in warned] == [__file__]


def test_current_names_are_accepted_in_silence() -> None:
    assert search("relu:8", max_trials=3) == ("relu:8", 3, 0)
    assert search("relu:8") == ("relu:8", 200, 0)


def test_one_argument_under_both_names_is_refused() -> None:
    options: dict[str, Any] = {"trials": 3, "max_trials": 3}
    with pytest.raises(TypeError, match=r"search\(\) got 'max_trials' twice: 'trials' is"):
        search("relu:8", **options)


def test_a_function_that_has_an_argument_of_the_earlier_name_keeps_it() -> None:
    assert count(trials=3) == 3
    given = {"trials": 3, "seed": 1}
    assert with_current_names("read", given, {"trials", "seed"}) == given

"""Tuning that begins with earlier results, measured for real."""

from __future__ import annotations

import loopwright as lw

TARGET = "cpu -num-cores=1"


def test_a_search_begins_with_what_won_before() -> None:
    earlier = lw.tune("relu:4096", target=TARGET, max_trials=6, progress=False)
    again = lw.tune("relu:4096", target=TARGET, max_trials=3, progress=False, warm_start=[earlier])
    right = [t for t in earlier.trials[1:] if t.measurement.ok]
    fastest = sorted(right, key=lambda t: t.provisional_secs)[:2]
    assert [t.trace for t in again.trials[1:]] == [t.trace for t in fastest]


def test_results_of_another_operator_do_no_harm() -> None:
    other = lw.tune("softmax:64,64", target=TARGET, max_trials=4, progress=False)
    found = lw.tune(
        "matmul:24,24,24", target=TARGET, max_trials=4, progress=False, warm_start=[other]
    )
    assert [trial.number for trial in found.trials] == [0, 1, 2, 3]
    assert found.default is not None
    assert found.best.run_secs <= found.default.run_secs

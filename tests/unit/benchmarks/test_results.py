"""The arithmetic of the benchmark of kernels, on rows made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.kernels import results
from benchmarks.kernels.table import print_changes, print_rows

MS = 1e-3


def row(**secs: Sequence[float | None] | str) -> dict[str, Any]:
    """Return a row of 2 GFLOP; a text in the place of samples is an error."""
    backends = {
        name: {"error": value, "secs": []} if isinstance(value, str) else {"secs": value}
        for name, value in secs.items()
    }
    return {"unit": "GFLOP/s", "amount": 2e9, "at": "", "backends": backends}


def test_the_rate_is_the_amount_over_the_median() -> None:
    assert results.rate(row(tuned=[0.5, None, 1.0, 4.0]), "tuned") == 2.0
    assert results.rate(row(tuned="does not build"), "tuned") is None
    assert results.rate(row(), "tuned") is None


def test_the_ratio_is_of_times_of_the_same_round() -> None:
    # The machine was ten times slower in two of the rounds; the quotients do not show it.
    found = results.ratio(
        row(tuned=[1.0, 10.0, 1.0, 10.0], jax=[2.0, 20.0, 2.0, 20.0]), "tuned", "jax"
    )
    assert found == results.Ratio(2.0, 2.0, 2.0)
    assert found.spread == 0.0


def test_the_ratio_has_quartiles_and_leaves_out_rounds_without_both() -> None:
    one = row(tuned=[1.0] * 5 + [1.0, None], jax=[1.0, 2.0, 3.0, 4.0, 5.0, None, 9.0])
    assert results.ratio(one, "tuned", "jax") == results.Ratio(3.0, 2.0, 4.0)
    assert results.ratio(row(tuned=[1.0], jax=[3.0]), "tuned", "jax") == results.Ratio(3, 3, 3)
    assert results.ratio(row(tuned=[1.0], jax=[None]), "tuned", "jax") is None


def test_the_best_peer_is_the_fastest_library_that_ran() -> None:
    one = row(
        tuned=[0.1], default=[0.2], ceiling=[0.01], jax="died", torch=[3.0, 1.0, 5.0], numpy=[2.0]
    )
    assert results.best_peer(one) == "numpy"
    assert results.best_peer(row(tuned=[0.1], ceiling=[0.01])) is None
    assert results.against_best(row(tuned=[0.1])) is None


def test_the_share_is_of_the_ceiling_of_the_same_rounds() -> None:
    assert results.share(row(tuned=[2.0, 4.0], ceiling=[1.0, 2.0])) == 50.0
    assert results.share(row(tuned=[2.0])) is None


def test_the_geometric_mean() -> None:
    assert results.geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2.0)
    assert results.geometric_mean([]) is None


def test_a_kernel_is_slower_beyond_noise_only() -> None:
    before = {name: row(tuned=[1.0] * 4, numpy=[2.0] * 4) for name in ("same", "near", "far")}
    now = {
        # Both slowed down: the machine did.
        "same": row(tuned=[3.0] * 4, numpy=[6.0] * 4),
        "near": row(tuned=[1.0] * 4, numpy=[1.85] * 4),
        "far": row(tuned=[1.0] * 4, numpy=[1.75] * 4),
    }
    verdicts = {change.name: change.is_slower for change in results.changes(before, now)}
    assert verdicts == {"same": False, "near": False, "far": True}


def test_what_spreads_widely_must_lose_more() -> None:
    quiet = row(tuned=[1.0] * 5, numpy=[2.0] * 5)
    noisy = row(tuned=[1.0] * 5, numpy=[1.0, 1.2, 1.5, 1.8, 2.0])
    (change,) = results.changes({"w": quiet}, {"w": noisy})
    assert change.noise == pytest.approx(0.6 / 1.5)
    assert not change.is_slower


def test_a_kernel_that_fails_now_is_slower_and_a_new_one_is_not() -> None:
    before = {"old": row(tuned=[1.0], numpy=[2.0])}
    now = {"old": row(tuned="no such loop", numpy=[2.0]), "new": row(tuned=[1.0], numpy=[2.0])}
    old, new = results.changes(before, now)
    assert (old.is_slower, old.error) == (True, "no such loop")
    assert (new.is_slower, new.before) == (False, None)


def test_failures_are_told_by_backend_and_reason() -> None:
    rows = {"a": row(jax="no", tuned=[1.0]), "b": row(jax="no"), "c": row(torch="no")}
    assert results.failures(rows) == {("jax", "no"): ["a", "b"], ("torch", "no"): ["c"]}


def test_the_table_shows_rates_shares_and_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {
        "one": row(default=[1.0], tuned=[4 * MS], numpy=[8 * MS], jax=[9 * MS], ceiling=[2 * MS]),
        "two": row(default=[1.0], tuned=[4 * MS], numpy=[2 * MS], jax="died", ceiling=[1 * MS]),
    }
    print_rows("title", rows, markdown=True)
    lines = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    head = ["workload", "unit", "default", "tuned", "numpy", "jax", "ceiling", "% of it"]
    assert [*head, "best peer", "tuned/best", "middle half"] in cells
    rates = ["GFLOP/s", "2.00", "500.0", "250.0", "222.2", "1000.0", "50"]
    assert ["one", *rates, "numpy", "2.00", "2.00-2.00"] in cells
    assert "failed" in next(line for line in cells if line[0] == "two")
    assert lines[-1].endswith("2 ratios to the best peer: 1.000, the lowest 0.50")


def test_the_table_compares_first_proposals_with_tuned_kernels(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = {
        "one": row(proposed=[5 * MS], tuned=[4 * MS], numpy=[8 * MS]),
        "two": row(proposed=[4 * MS], tuned=[2 * MS], numpy=[3 * MS]),
        "three": row(tuned=[2 * MS], numpy=[3 * MS]),
    }
    print_rows("title", rows, markdown=True)
    last = capsys.readouterr().out.splitlines()[-1]
    assert "without trials: 0.632 of the rate of tuned kernels" in last
    assert last.endswith("the worst tenth at most 0.50")


def test_the_check_shows_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    print_changes(
        [
            results.Change("slow", 2.0, 1.0, 0.1),
            results.Change("lost", 2.0, None, 0.1, "no such loop"),
            results.Change("young", None, 1.0, 0.1),
        ]
    )
    slow, lost, young = capsys.readouterr().out.strip().splitlines()[-3:]
    assert slow.split()[1:] == ["2.00", "1.00", "-50%", "10%", "SLOWER"]
    assert "failed: no such loop" in lost
    assert young.split()[-1] == "new"

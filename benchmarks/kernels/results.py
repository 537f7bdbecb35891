"""Statistics of a run: rates, ratios of times of the same round, and their spread.

A row is what `driver.measure` returns for a workload:

    {"unit": "GFLOP/s", "amount": 2e9, "at": "...", "backends": {
        "tuned": {"secs": [1e-3, None, ...], "rel_error": 1e-7, "note": ""},
        "jax": {"error": "...", "secs": [None, ...]}}}

Element n of every "secs" is from round n; None is a skipped turn.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
NOT_PEERS = ("default", "proposed", "tuned", "dispatched", "ceiling")


@dataclass(frozen=True)
class Ratio:
    """The speed-up of one backend over another: median and quartiles over rounds."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The range of the middle half, as a fraction of the median."""
        return (self.high - self.low) / self.median


def samples(row: Row, backend: str) -> list[float | None]:
    """Return the seconds of a run in each round; empty if the backend failed."""
    entry = row["backends"].get(backend, {})
    return [] if "error" in entry else list(entry.get("secs", []))


def median_secs(row: Row, backend: str) -> float | None:
    """Return the median seconds of a run; None without samples."""
    taken = [secs for secs in samples(row, backend) if secs is not None]
    return statistics.median(taken) if taken else None


def rate(row: Row, backend: str) -> float | None:
    """Return the rate in GFLOP/s or GB/s, the unit of the workload."""
    secs = median_secs(row, backend)
    return None if secs is None else float(row["amount"]) / secs / 1e9


def ratio(row: Row, backend: str, other: str) -> Ratio | None:
    """Return the speed-up of `backend` over `other`, from the ratios of each round.

    It is None if no round has samples of both.
    """
    pairs = zip(samples(row, backend), samples(row, other), strict=False)
    quotients = [theirs / ours for ours, theirs in pairs if ours and theirs]
    if not quotients:
        return None
    if len(quotients) == 1:
        return Ratio(*quotients * 3)
    low, middle, high = statistics.quantiles(quotients, n=4, method="inclusive")
    return Ratio(middle, low, high)


def best_peer(row: Row) -> str | None:
    """Return the library with the shortest median; None if none ran."""
    timed = {name: median_secs(row, name) for name in row["backends"] if name not in NOT_PEERS}
    ran = {name: secs for name, secs in timed.items() if secs is not None}
    return min(ran, key=lambda name: ran[name], default=None)


def against_best(row: Row, backend: str = "tuned") -> Ratio | None:
    """Return the speed-up of a backend over the best library."""
    peer = best_peer(row)
    return None if peer is None else ratio(row, backend, peer)


def share(row: Row, backend: str = "tuned") -> float | None:
    """Return the percentage of the machine's ceiling that a backend reaches."""
    found = ratio(row, backend, "ceiling")
    return None if found is None else 100 * found.median


def geometric_mean(values: Iterable[float]) -> float | None:
    """Return the geometric mean of positive numbers; None if there are none."""
    logs = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logs)) if logs else None


@dataclass(frozen=True)
class Change:
    """The change of a workload since an earlier run, by its ratio to a reference of the same run.

    Attributes:
        before: The earlier ratio; None for a new workload.
        now: The current ratio; None if it failed.
        noise: The relative change that is not significant.
        error: The reason of a failure.
    """

    name: str
    before: float | None
    now: float | None
    noise: float
    error: str = ""

    @property
    def is_slower(self) -> bool:
        """Whether it lost more than the noise, or no longer runs."""
        if self.before is None:
            return False
        return self.now is None or self.now < self.before * (1 - self.noise)


MIN_NOISE = 0.10
"""Relative difference of two runs because of the addresses of their buffers."""


def changes(
    before: Mapping[str, Row], now: Mapping[str, Row], reference: str = "numpy"
) -> list[Change]:
    """Compare the tuned kernels of a run with those of an earlier one.

    A difference is significant above a tenth, and above the sum of the spreads of both runs.
    """
    found = []
    for name, row in now.items():
        old = ratio(before[name], "tuned", reference) if name in before else None
        new = ratio(row, "tuned", reference)
        spreads = [measured.spread for measured in (old, new) if measured is not None]
        found.append(
            Change(
                name,
                None if old is None else old.median,
                None if new is None else new.median,
                max(MIN_NOISE, math.hypot(*spreads)),
                row["backends"].get("tuned", {}).get("error", ""),
            )
        )
    return found


def failures(rows: Mapping[str, Row]) -> dict[tuple[str, str], list[str]]:
    """Return the workloads that failed, by backend and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, row in rows.items():
        for backend, entry in row["backends"].items():
            if "error" in entry:
                found.setdefault((backend, entry["error"]), []).append(name)
    return found


def ordered_backends(rows: Mapping[str, Row], order: Sequence[str]) -> list[str]:
    """Return the backends of all rows: those in `order` first, then the others."""
    present = {name: None for row in rows.values() for name in row["backends"]}
    return [name for name in order if name in present] + [n for n in present if n not in order]

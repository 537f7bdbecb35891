"""The table of a run in Markdown, with the bar of each item, and its result as JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import numpy as np

from benchmarks import RESULTS
from benchmarks.fleet.fleet import OWNERS, Size
from benchmarks.fleet.measure import NUM_STREAMS, Measured
from benchmarks.report import commit, machine

BAR_RATE = 900.0
BAR_CORES = 1.2
_ROLES = ("scheduler", "coordinator", "database", "api", "workers")


@dataclass(frozen=True)
class Row:
    """One item: its value, its bar as text, and whether the value meets it; None without a bar."""

    item: str
    value: str
    bar: str = ""
    is_met: bool | None = None


def rows(size: Size, measured: Measured) -> list[Row]:
    """Return the items of a run."""
    return [
        *_rates(size, measured),
        *_requests(size, measured),
        *_failures(measured),
        *_joining(size, measured),
        *_costs(measured),
    ]


def busy_share(size: Size, measured: Measured) -> float:
    """Return the share of the window in which a worker was busy."""
    inside = [r for r in measured.reports if measured.begin < r["at"] <= measured.end]
    return sum(float(r["busy_secs"]) for r in inside) / (size.workers * measured.secs)


def _rates(size: Size, measured: Measured) -> list[Row]:
    rate = measured.num_stored / measured.secs
    busy = busy_share(size, measured)
    gaps = [
        g for r in measured.reports if measured.begin < r["at"] <= measured.end for g in r["gaps"]
    ]
    goal = BAR_RATE * size.workers / 1000
    return [
        Row("trials stored a second", f"{rate:.1f}", f">= {goal:g}", rate >= goal),
        Row("workers busy", f"{100 * busy:.1f}%", ">= 95%", busy >= 0.95),
        _milliseconds("gap between batches, p99", gaps, 100),
    ]


def _requests(size: Size, measured: Measured) -> list[Row]:
    load = measured.lookups
    assert load is not None
    rate = load.per_sec
    return [
        Row("look-ups a second", f"{rate:.0f}", ">= 500", rate >= 495),
        _milliseconds("look-up, p99", load.secs, 20),
        Row("look-ups that failed", str(load.num_failed), "0", load.num_failed == 0),
        _milliseconds(
            f"event of a stream from its commit, p99 of {min(NUM_STREAMS, size.jobs)} streams",
            measured.stream_secs,
            250,
        ),
        Row(
            "streams that broke",
            str(measured.num_broken_streams),
            "0",
            measured.num_broken_streams == 0,
        ),
        Row("streams that ended with their job", str(measured.num_ended_streams)),
    ]


def _failures(measured: Measured) -> list[Row]:
    lost = sum(account.num_lost for account in measured.accounts.values())
    repeated = sum(account.num_repeated for account in measured.accounts.values())
    longest = max(measured.takeover_secs, default=None)
    return [
        Row("kills of a coordinator and of 5% of the workers", str(measured.num_kills)),
        Row("trials lost", str(lost), "0", lost == 0),
        Row("trials repeated", str(repeated), "0", repeated == 0),
        _seconds("take-over of a killed coordinator's jobs, longest", longest, 5),
    ]


def _joining(size: Size, measured: Measured) -> list[Row]:
    share = measured.shares.get(OWNERS[1], 0.0)
    unfairness = abs(share - 0.5) / 0.5
    return [
        Row(
            f"until {measured.num_begun} of {size.jobs} jobs had a trial",
            f"{measured.begun_secs:.0f} s",
        ),
        _seconds(f"until all {size.workers} joining workers are served", measured.joined_secs, 15),
        _seconds("first trial of a job of high priority", measured.first_trial_secs, 2),
        Row(
            "share of the owner of a quarter of the jobs",
            f"{100 * share:.0f}%",
            "45 to 55%",
            unfairness <= 0.1,
        ),
    ]


def _costs(measured: Measured) -> list[Row]:
    cores = {
        role: measured.usage[role].cpu_between(measured.begin, measured.end) / measured.secs
        for role in _ROLES
        if role in measured.usage
    }
    both = cores.get("coordinator", 0.0) + cores.get("database", 0.0)
    per_trial = 1e3 * measured.secs / max(1, measured.num_stored)
    growth = {
        role: measured.usage[role].growth(measured.begin, measured.end)
        for role in ("scheduler", "coordinator", "database", "api")
    }
    worst = max(growth, key=lambda role: growth[role])
    return [
        Row("cores of coordinators and database", f"{both:.2f}", "<= 1.2", both <= BAR_CORES),
        Row(
            "growth of memory",
            f"{100 * (growth[worst] - 1):.0f}% ({worst})",
            "<= 10%",
            growth[worst] <= 1.1,
        ),
        *(
            Row(f"CPU a trial, {role}", f"{used * per_trial:.2f} ms")
            for role, used in cores.items()
        ),
    ]


def _milliseconds(item: str, secs: Sequence[float], most: float) -> Row:
    if not secs:
        return Row(item, "none", f"<= {most:g} ms", is_met=False)
    value = 1e3 * float(np.quantile(secs, 0.99))
    return Row(item, f"{value:.0f} ms", f"<= {most:g} ms", value <= most)


def _seconds(item: str, secs: float | None, most: float) -> Row:
    if secs is None:
        return Row(item, "none", f"<= {most:g} s", is_met=False)
    return Row(item, f"{secs:.1f} s", f"<= {most:g} s", secs <= most)


def write(size: Size, measured: Measured) -> None:
    """Print the table, and write the result to `benchmarks/results/fleet.json`."""
    found = rows(size, measured)
    signs = {True: "yes", False: "no", None: ""}
    print(
        f"{size.workers} workers, {size.jobs} jobs, {size.coordinators} coordinators, "
        f"{measured.secs:.0f} s, commit {commit()}\n"
    )
    print("| item | measured | bar | met |\n| --- | --- | --- | --- |")
    for row in found:
        print(f"| {row.item} | {row.value} | {row.bar} | {signs[row.is_met]} |")
    RESULTS.mkdir(exist_ok=True)
    content = {
        "benchmark": "fleet",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "commit": commit(),
        "size": asdict(size),
        "rows": [asdict(row) for row in found],
        "takeover_secs": measured.takeover_secs,
        "stream_median_secs": statistics.median(measured.stream_secs or [0.0]),
    }
    (RESULTS / "fleet.json").write_text(json.dumps(content, indent=2) + "\n")

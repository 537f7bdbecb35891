"""Commands 2 and 3: tune operators, and time each winner beside its peers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import loopwright as lw
from benchmarks.gpu.cases import Case
from benchmarks.gpu.interleaved import (
    cold_secs,
    contestants,
    ratio_of_peer,
    rounds,
    summary,
    trial_arrays,
)
from benchmarks.gpu.session import Session
from workers.wire.request import MeasureLimits

_NUM_ROUNDS = 9
"""Rounds of a winner and its peers. Chosen: the middle half of nine has five."""
_ORACLE_BYTES = 32 << 30
"""Memory of the host for the oracle, whose arrays are float64: the scores of attention have 2 GiB.
Chosen.
"""
_TUNING_SHARE = 0.7
"""The part of a case's time that is for tuning. Chosen: peers are compiled in the rest."""


def tune_and_compare(session: Session, cases: Sequence[Case], max_trials: int) -> None:
    """Tune each case for its share of the time; add a row for each, also for a failure."""
    for number, case in enumerate(cases):
        secs = session.share(len(cases) - number)
        session.say(f"{case.spec}: tuning, at most {max_trials} trials in {secs:.0f} s")
        row: dict[str, Any] = {"spec": case.spec, "unit": case.unit}
        try:
            text = _tune(session, case, max_trials, secs, row)
        except Exception as error:  # the other cases go on
            row["error"] = text = f"{type(error).__name__}: {error}"[:1000]
        session.add(row, f"{case.spec}: {text}")


def _tune(
    session: Session, case: Case, max_trials: int, max_secs: float, row: dict[str, Any]
) -> str:
    """Fill a row; return it in words."""
    gpu, start = session.gpu, time.monotonic()
    result = lw.tune(
        case.func,
        target=gpu.target,
        max_trials=max_trials,
        max_secs=_TUNING_SHARE * max_secs,
        progress=False,
        warm_start=None,
        limits=MeasureLimits(memory_bytes=_ORACLE_BYTES),
    )
    best = result.best
    measured = best.measurement
    row |= {
        "tuning_secs": time.monotonic() - start,
        "num_trials": len(result.trials),
        "errors": Counter(str(t.measurement.error) for t in result.trials if t.measurement.error),
        "best_trial": best.number,
        "sketch": best.sketch,
        "trace": best.trace.to_json(),
        "max_error": measured.max_error,
        "resources": None if measured.resources is None else asdict(measured.resources),
        "conditions": None if measured.conditions is None else asdict(measured.conditions),
        "default_secs": result.default_time.provisional_secs,
        "trials": [
            {"sketch": t.sketch, "secs": t.measurement.run_secs, "error": t.measurement.error}
            for t in result.trials
        ],
    }
    artifact = lw.build(result.schedule(), gpu.target).artifact
    arrays = trial_arrays(case.func, gpu)
    runs, errors = contestants(artifact, case.spec, arrays, gpu)
    samples = rounds(runs, cold_secs, 1 if gpu.is_emulated else _NUM_ROUNDS, max_secs / 10)
    times = summary(samples)
    row |= {"secs": times["loopwright"]["secs"], "times": times, "peer_errors": errors}
    text = f"{case.rate(row['secs']):.3g} {case.unit}, sketch {best.sketch}"
    if (peer := ratio_of_peer(samples)) is not None:
        row["best_peer"], row["relative_speed"] = peer
        text += f", {peer[1]:.2f} times the speed of {peer[0]}"
    return text

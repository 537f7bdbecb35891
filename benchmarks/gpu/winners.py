"""Command 4: winners of commands 2 and 3 beside their peers, with a cold and a warm L2 cache."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
from benchmarks.gpu.session import Session, result_path
from compiler.backends.cuda.device_call import DeviceCall
from compiler.schedule.trace.trace import Trace

_NUM_ROUNDS = 15
"""Rounds of all contestants. Chosen: medians of as many agree to about a percent."""
_SOURCES = ("products", "operators")


def compare_winners(session: Session) -> None:
    """Time each stored winner again; add a row for each state of the cache."""
    winners = list(_winners(session))
    if not winners:
        session.say(f"no winners in {session.folder}: run products or operators first")
    for number, (case, trace) in enumerate(winners):
        secs = session.share(len(winners) - number)
        try:
            _compare(session, case, trace, secs)
        except Exception as error:  # the other winners go on
            text = f"{type(error).__name__}: {error}"[:1000]
            session.add({"spec": case.spec, "error": text}, f"{case.spec}: {text}")


def _winners(session: Session) -> Iterator[tuple[Case, Trace]]:
    for command in _SOURCES:
        path = result_path(session.folder, command, session.gpu)
        if path.exists():
            for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
                if "trace" in row:
                    yield Case(row["spec"], row["unit"]), Trace.from_json(row["trace"])


def _compare(session: Session, case: Case, trace: Trace, max_secs: float) -> None:
    gpu = session.gpu
    artifact = lw.build(trace.apply_to(case.func), gpu.target).artifact
    arrays = trial_arrays(case.func, gpu)
    runs, errors = contestants(artifact, case.spec, arrays, gpu)
    num_rounds = 1 if gpu.is_emulated else _NUM_ROUNDS
    for cache, time_run in (("cold", cold_secs), ("warm", _warm_secs)):
        samples = rounds(runs, time_run, num_rounds, max_secs / 4)
        times, state = summary(samples), gpu.state()
        secs = times["loopwright"]["secs"]
        row: dict[str, Any] = {
            "spec": case.spec,
            "unit": case.unit,
            "l2": cache,
            "secs": secs,
            "times": times,
            "peer_errors": errors,
            "state": None if state is None else asdict(state),
        }
        text = f"{case.spec}, {cache} L2: {case.rate(secs):.3g} {case.unit}"
        if (peer := ratio_of_peer(samples)) is not None:
            row["best_peer"], row["relative_speed"] = peer
            text += f", {peer[1]:.2f} times the speed of {peer[0]}"
        session.add(row, text)
    arrays.check_again()


def _warm_secs(run: DeviceCall, calls: int = 20) -> float:
    return run.warm_secs(calls)

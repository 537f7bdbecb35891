"""Measurements as JSON, also from a process that is not trusted."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.runtime.conditions import TimingConditions
from compiler.runtime.measurement import ErrorKind, LibraryFacts, Measurement, Setting
from compiler.runtime.resources import KernelResources

secs = st.floats(0, 1e6)
settings = st.builds(Setting, st.text(max_size=8), st.text(max_size=8), st.none() | secs)
libraries = st.builds(
    LibraryFacts,
    st.text(max_size=8),
    st.text(max_size=8),
    st.lists(settings, max_size=3).map(tuple),
    st.booleans(),
    st.none() | secs,
)
counts = st.integers(0, 2**31 - 1)
resources = st.builds(KernelResources, counts, counts, counts, counts, st.none() | st.floats(0, 1))
conditions = st.builds(
    TimingConditions,
    st.sampled_from(["cold", "warm"]),
    st.none() | counts,
    st.none() | secs,
    st.none() | st.integers(-50, 150),
    st.lists(st.text(max_size=8), max_size=3).map(tuple),
)
durations = dict.fromkeys(("build_secs", "check_secs", "time_secs"), secs)
RESOURCES = asdict(KernelResources(32, 0, 0, 0, 0.5))
measured = st.builds(
    Measurement,
    run_secs=st.lists(secs, min_size=1, max_size=5).map(tuple),
    max_error=st.none() | secs,
    is_spot_checked=st.booleans(),
    worker=st.text(max_size=8),
    resources=st.none() | resources,
    conditions=st.none() | conditions,
    library=st.none() | libraries,
    **durations,
)
failed = st.builds(
    Measurement, error=st.sampled_from(ErrorKind), message=st.text(max_size=20), **durations
)


@given(measured | failed)
def test_json_keeps_every_field(measurement: Measurement) -> None:
    assert Measurement.from_json(json.loads(json.dumps(measurement.to_json()))) == measurement


def test_there_are_run_times_or_an_error() -> None:
    for fields in ({}, {"run_secs": (1.0,), "error": ErrorKind.CRASH}):
        with pytest.raises(ValueError, match="run times or an error"):
            Measurement(**fields)  # type: ignore[arg-type]


def test_a_failure_is_slower_than_any_run() -> None:
    assert Measurement(error=ErrorKind.CRASH).best_secs == math.inf
    assert Measurement(run_secs=(3.0, 2.0)).best_secs == 2.0


@pytest.mark.parametrize(
    "changes",
    [
        {"run_secs": [-1.0]},
        {"run_secs": [math.nan]},
        {"run_secs": [True]},
        {"run_secs": "12"},
        {"run_secs": [], "error": "bored"},
        {"worker": 3},
        {"message": "x" * 70_000},
        {"max_error": math.inf},
        {"build_secs": None},
        {"surprise": 1},
        {"library": []},
        {"library": {"is_below_cpu": "yes"}},
        {"is_spot_checked": "yes"},
        {"library": {"tried": [{"name": "a", "kernel_set": "", "secs": -1}]}},
        {"library": {"peak_flops": -1.0}},
        {"conditions": []},
        {"conditions": {}},
        {"conditions": {"l2": "hot"}},
        {"conditions": {"l2": "cold", "sm_mhz": "fast"}},
        {"conditions": {"l2": "cold", "watts": float("nan")}},
        {"conditions": {"l2": "cold", "celsius": 2**31}},
        {"conditions": {"l2": "cold", "slowed_by": [3]}},
        {"conditions": {"l2": "cold", "slowed_by": ["x" * 65]}},
        {"conditions": {"l2": "cold", "slowed_by": ["x"] * 17}},
        {"resources": []},
        {"resources": {"registers": 3}},
        {"resources": {**RESOURCES, "registers": -1}},
        {"resources": {**RESOURCES, "registers": True}},
        {"resources": {**RESOURCES, "shared_bytes": 2**31}},
        {"resources": {**RESOURCES, "occupancy": 1.5}},
        {"resources": {**RESOURCES, "bank_conflicts": 0.5}},
        {"resources": {**RESOURCES, "bank_conflicts": float("inf")}},
        {"resources": {**RESOURCES, "surprise": 1}},
    ],
)
def test_a_hostile_object_is_refused(changes: dict[str, Any]) -> None:
    honest = Measurement(run_secs=(1.0,)).to_json()
    with pytest.raises((ValueError, TypeError)):
        Measurement.from_json(honest | changes)


def test_what_is_no_object_is_refused() -> None:
    things: tuple[Any, ...] = (None, 3, [], "text")
    for thing in things:
        with pytest.raises(ValueError, match="expected an object"):
            Measurement.from_json(thing)

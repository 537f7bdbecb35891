"""All workloads, by name and by group."""

from __future__ import annotations

from benchmarks.workloads.classes import CLASSES
from benchmarks.workloads.models import MODELS
from benchmarks.workloads.public import PUBLIC
from benchmarks.workloads.shapes import SHAPES
from benchmarks.workloads.workload import BenchmarkWorkload

WORKLOADS: tuple[BenchmarkWorkload, ...] = (*PUBLIC, *MODELS, *CLASSES)
BY_NAME = {w.name: w for w in (*WORKLOADS, *SHAPES)}


def select(words: str) -> list[BenchmarkWorkload]:
    """Return the workloads of a list of names and groups; "all" selects every one.

    Raises:
        ValueError: If an entry is neither a name nor a group.
    """
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    known = {"all", *(w.name for w in WORKLOADS), *(w.group for w in WORKLOADS)}
    if unknown := [word for word in wanted if word not in known]:
        raise ValueError(f"no workload or group is called {unknown[0]!r}")
    return [w for w in WORKLOADS if {"all", w.name, w.group} & set(wanted)]

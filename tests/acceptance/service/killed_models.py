"""A service tunes a model while its processes are killed at random moments: `make fuzz-kills`.

What is killed, and after how many trials, follows from the seed. At the end each trial was stored
once, and a package of the best schedules computes what NumPy computes. Times are calculated from
candidates, so the result must be that of a search in one process. With `--measure`, workers measure
them, and workers are killed too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import numpy as np
import psutil

from compiler.executor.executor import Executor
from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Graph, TensorType, constant
from compiler.graph.reference import run_reference
from compiler.package.assemble import LoweredModel, assemble
from compiler.package.build_package import build_package
from compiler.package.in_place import work_in_place
from compiler.package.lower_model import lower_model
from compiler.schedule.trace.trace import Trace
from compiler.target.cpu import CpuTarget
from loopwright.models.schedules import build_candidate, kernel_name
from service.store.results.trial_writer import MAX_WAITING
from tests.acceptance.service.forked_service import (
    LOOK_SECS,
    ForkedService,
    cost,
    running,
    wait_until,
)
from tests.patience import PATIENCE_SECS
from tuner.candidate import Candidate
from tuner.loop.search_loop import ROUND_SIZE
from tuner.loop.tune import tune_tasks
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task

ROWS = 4
WIDTH = 40
MORE_ROUNDS = 4
"""Rounds beyond the first of each task, which the tasks share."""
MAX_IN_VAIN = 2
"""Kills of the coordinator in a row before it measured anything: after several, the job fails."""


@dataclass(frozen=True)
class Settings:
    """What to tune, and how often to kill.

    Attributes:
        rules: Of the design spaces; with all rules, most of the time is spent on making them.
    """

    num_tasks: int
    num_kills: int
    seed: int = 0
    rules: tuple[str, ...] = ("multi_level_tiling",)
    is_measured: bool = False

    @property
    def max_trials(self) -> int:
        """The trial limit of the model."""
        return (self.num_tasks + MORE_ROUNDS) * ROUND_SIZE


def chain(num_layers: int) -> Graph:
    """Return products one after the other, all of different shapes, so that each is a task."""
    rng = np.random.default_rng(0)
    builder = GraphBuilder("chain")
    x = builder.input("x", TensorType((ROWS, WIDTH), "float32"))
    for width in range(WIDTH, WIDTH + num_layers):
        bound = np.sqrt(6 / width)  # elements are as large after a layer as before it
        weights = rng.uniform(-bound, bound, (width, width + 1)).astype(np.float32)
        x = builder.add("nn.relu", builder.add("matmul", x, constant(weights)))
    return builder.finish([x], ["y"])


def submit(service: ForkedService, settings: Settings, graph: str, rng: Random) -> str:
    """Submit a model; the API is killed while it reads the model, and the request repeated."""
    body = {
        "name": "chain",
        "model": {"graph": graph},
        "max_trials": settings.max_trials,
        "target": "cpu -num-cores=1",
        "rules": settings.rules,
        "warm_start": False,
        "seed": settings.seed,
    }
    headers = {"Idempotency-Key": "chain"}
    with suppress(httpx2.TimeoutException):
        secs = rng.uniform(0.1, 2.0)
        service.http.post("/models", json=body, headers=headers, timeout=secs)
    service.restart_api()
    first, again = (service.http.post("/models", json=body, headers=headers) for _ in range(2))
    assert first.status_code == 201, first.text
    assert first.json()["id"] == again.json()["id"]
    [model] = service.get("/models")["items"]
    return str(model["id"])


def kill_at_random(
    service: ForkedService, settings: Settings, model_id: str, rng: Random
) -> Counter[str]:
    """Kill processes at random moments; return how often each kind was killed."""
    killed: Counter[str] = Counter()
    before, in_vain = 0, 0
    for _ in range(settings.num_kills):
        step = rng.randrange(2 * settings.max_trials // settings.num_kills)
        is_at_once = rng.random() < 0.25 and in_vain < MAX_IN_VAIN
        _wait_for_trials(service, model_id, before + (0 if is_at_once else 1 + step))
        time.sleep(rng.uniform(0, 0.3))
        measured = _read(service, model_id)["num_measured"]
        assert measured >= before, "stored trials were lost"
        in_vain = 0 if measured > before else in_vain + 1
        before = measured
        killed[_kill_one(service, rng)] += 1
    return killed


def _kill_one(service: ForkedService, rng: Random) -> str:
    victim = rng.choice(("api", "coordinator", "worker"))
    below = service.coordinator.processes_below()
    if victim == "api":
        service.restart_api()
    elif victim == "worker" and below:
        with suppress(psutil.NoSuchProcess):
            rng.choice(below).kill()
    else:
        victim = "coordinator"
        service.restart_coordinator()
    return victim


def _read(service: ForkedService, model_id: str) -> dict[str, Any]:
    return dict(service.get(f"/models/{model_id}"))


def _wait_for_trials(service: ForkedService, model_id: str, number: int) -> None:
    def is_done() -> bool:
        model = _read(service, model_id)
        return model["num_measured"] >= number or model["state"] not in {"queued", "running"}

    wait_until(is_done, f"there are fewer than {number} trials")


def wait_for_end(service: ForkedService, model_id: str) -> dict[str, Any]:
    """Return the model once its jobs have ended; it may take long if it makes progress."""
    newest, changed_at = -1, time.monotonic()
    while (model := _read(service, model_id))["state"] in {"queued", "running"}:
        if model["num_measured"] > newest:
            newest, changed_at = model["num_measured"], time.monotonic()
        late = f"no trial follows number {newest}, and the model does not end"
        assert time.monotonic() - changed_at < PATIENCE_SECS, late
        time.sleep(4 * LOOK_SECS)
    return model


def check_trials(service: ForkedService, model: Mapping[str, Any]) -> dict[str, list[str]]:
    """Check that each trial was stored once; return the candidates of each task, in order."""
    stored: dict[str, list[str]] = {}
    for task in model["tasks"]:
        assert task["state"] == "succeeded", task
        trials = service.get(f"/jobs/{task['job_id']}/trials", limit=500)["items"]
        assert [trial["number"] for trial in trials] == list(range(task["num_measured"]))
        keys = [Trace.from_json(trial["trace"]).key() for trial in trials]
        assert len(set(keys)) == len(keys), "a candidate was stored twice"
        stored[task["workload_key"]] = keys
    return stored


def search_here(
    lowered: LoweredModel, jobs: Sequence[Mapping[str, Any]], settings: Settings
) -> dict[str, list[str]]:
    """Return the candidates of each task of a search in this process, in order."""
    programs = {task.key: task for task in lowered.tasks}
    tasks = [
        Task(programs[job["workload_key"]].func, CpuTarget(job["target"]), job["weight"])
        for job in jobs
    ]
    results = tune_tasks(
        tasks,
        measurer=MemoryMeasurer(cost),
        max_trials=settings.max_trials,
        rules=settings.rules,
        seed=settings.seed,
    )
    return {
        task.workload_key: [trial.candidate.key for trial in result.trials]
        for task, result in zip(tasks, results, strict=True)
    }


def check_package(answer: Mapping[str, Any], graph: Graph, lowered: LoweredModel) -> None:
    """Check that a package of the best schedules computes what NumPy computes."""
    target = CpuTarget(answer["target"])
    best = {
        schedule["workload_key"]: Candidate(schedule["sketch"], Trace.from_json(schedule["trace"]))
        for schedule in answer["schedules"]
    }
    built = {
        task.key: build_candidate(
            Task(task.func, target), best[task.key], kernel_name(number, task.func.name)
        )
        for number, task in enumerate(lowered.tasks)
    }
    plan = assemble(*work_in_place(lowered, built, target), target)
    executor = Executor(build_package(plan))
    x = np.random.default_rng(1).uniform(-1, 1, (ROWS, WIDTH)).astype(np.float32)
    expected = run_reference(graph, {"x": x})["y"]
    assert float(expected.max()) > 0.1
    np.testing.assert_allclose(executor.run({"x": x})["y"], expected, rtol=1e-3, atol=1e-4)


def run(settings: Settings, folder: Path, db_url: str) -> str:
    """Tune a model amid kills, and check the result; return what happened as a line."""
    rng = Random(settings.seed)
    graph = chain(settings.num_tasks)
    lowered = lower_model(graph)
    with running(folder, db_url, is_measured=settings.is_measured) as service:
        model_id = submit(service, settings, lowered.graph.script(), rng)
        service.coordinator.start()
        killed = kill_at_random(service, settings, model_id, rng)
        model = wait_for_end(service, model_id)
        stored = check_trials(service, model)
        assert len(stored) == settings.num_tasks
        jobs = service.get(f"/groups/{model['group_id']}")["jobs"]
        check_package(service.get(f"/models/{model_id}/package"), graph, lowered)
        num_measured = model["num_measured"]
        if not settings.is_measured:
            assert stored == search_here(lowered, jobs, settings)
            # A kill loses at most what waits to be stored.
            most_lost = killed["coordinator"] * MAX_WAITING
            assert num_measured <= service.num_calculated <= num_measured + most_lost
    shown = ", ".join(f"{kind} {number} times" for kind, number in sorted(killed.items()))
    return f"{num_measured} trials of {len(stored)} tasks; killed: {shown}"


def main() -> None:
    """Tune one model amid kills."""
    parser = argparse.ArgumentParser(prog="make fuzz-kills", description=__doc__)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rules", nargs="+", default=list(Settings.rules))
    parser.add_argument("--db", help="the URL of an empty database; by default a new file")
    parser.add_argument("--measure", action="store_true", help="measure candidates by a worker")
    options = parser.parse_args()
    settings = Settings(
        options.tasks, options.kills, options.seed, tuple(options.rules), options.measure
    )
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="loopwright-") as folder:
        db_url = options.db or f"sqlite:///{folder}/loopwright.db"
        line = run(settings, Path(folder), db_url)
    sys.stdout.write(f"{line}; {time.monotonic() - began:.0f} s\n")


if __name__ == "__main__":
    main()

"""From the first proposals of a model to tuned schedules: search, and keep the faster model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from compiler.backends.error import BuildError
from compiler.graph.nodes import Graph
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.trace import Trace
from compiler.target.cpu import CpuTarget
from compiler.user_cache import default_directory
from loopwright.client.client import Client
from loopwright.client.progress import TrialProgress, format_ratio, format_secs
from loopwright.errors import NotFoundError
from loopwright.models.comparison import compare_models, fastest_variants, inputs_of
from loopwright.models.compilation import Compilation, Kernels
from loopwright.models.executable import Executable
from loopwright.models.image_layouts import begun_layout
from loopwright.models.model_search import (
    PLATEAU,
    TimedProgram,
    alternatives,
    search_model,
    worth_tuning,
)
from loopwright.models.records import TuningRecords, open_records
from loopwright.models.schedules import ProposedKernel, build_candidate
from service.coordinator.measurer import WorkerMeasurer
from service.wire.trial_limit import MAX_TRIALS
from tuner.candidate import Candidate
from tuner.replay.base_model import BaseModel
from tuner.task import Task
from workers.child.runner import ChildRunner

Alternatives = Mapping[str, Sequence[Candidate]]
"""Schedules to try beside the first proposals, by the keys of programs."""

_STORED_SKETCH = "stored"
"""The name of a schedule from a server, which does not send the name of its sketch."""


@dataclass(frozen=True)
class ModelTuning:
    """How a model is tuned.

    Attributes:
        max_trials: The limit on trials; None to end on plateaus.
        seed: Of the search.
        progress: Whether to draw a progress bar; None only on a terminal or in a notebook.
    """

    max_trials: int | None
    seed: int
    progress: bool | None = None


def layout_here(
    graph: Graph, target: CpuTarget, base: BaseModel, tuning: ModelTuning
) -> int | None:
    """Return the layout of images that an earlier search on this host chose; see `begun_layout`."""
    with _records(base, tuning) as records:
        return begun_layout(graph, target, records.num_trials)


def tune_here(
    compilation: Compilation, first: Executable, base: BaseModel, tuning: ModelTuning
) -> Alternatives:
    """Search on this host; continue from what is recorded there."""
    programs = _programs(compilation, first)
    with _records(base, tuning) as records:
        chosen = worth_tuning(programs, tuning.max_trials, records.num_trials)
        total_secs = sum(program.secs for program in programs)
        rest_secs = total_secs - sum(program.secs for program in chosen)
        label = f"{first.plan.name}: {len(chosen)} of {len(programs)} programs"
        with (
            TrialProgress(label, tuning.max_trials, show=tuning.progress) as bar,
            ChildRunner() as runner,
        ):
            runner.shares_builds = True

            def show(num_measured: int, secs: float) -> None:
                projected_secs = rest_secs + secs
                ratio = format_ratio(total_secs / projected_secs)
                bar.draw(num_measured, f"projected {format_secs(projected_secs)}, {ratio}")

            search_model(
                chosen,
                WorkerMeasurer(runner, libraries=()),
                records,
                max_trials=tuning.max_trials,
                seed=tuning.seed,
                cost_model=base.model,
                on_progress=show,
            )
        return {p.task.workload_key: alternatives(p, records) for p in programs}


def tune_there(compilation: Compilation, client: Client, tuning: ModelTuning) -> Alternatives:
    """Search on a server, as jobs of a model; without trials, take what it has."""
    if tuning.max_trials == 0:
        best = {key: _best_there(client, task) for key, task in compilation.tasks.items()}
        return {key: [candidate] for key, candidate in best.items() if candidate is not None}
    # The graph after rewriting: the server has no weights to fold, and would find other programs.
    graph = compilation.model.graph
    model = client.tune_model(
        graph.script(),
        name=graph.name,
        target=compilation.target,
        max_trials=MAX_TRIALS if tuning.max_trials is None else tuning.max_trials,
        plateau=PLATEAU if tuning.max_trials is None else None,
        seed=tuning.seed,
    )
    client.group(model.group_id).wait(progress=tuning.progress)
    return {
        schedule.workload_key: [Candidate(schedule.sketch, Trace.from_json(schedule.trace))]
        for schedule in client.model_schedules(model.id).schedules
    }


def faster_model(
    compilation: Compilation, first: Executable, tried: Alternatives, seed: int
) -> Executable:
    """Return the model with the fastest of its schedules, or the first one if that is faster."""
    variants = _variants(compilation, tried)
    inputs = inputs_of(first.plan)
    winners = fastest_variants([compilation.plan(kernels) for kernels in variants], inputs, seed)
    kernels = {key: variants[winners.get(key, 0)][key] for key in compilation.first}
    # A variant without an alternative of a program has its first kernel.
    if all(kernel is compilation.first[key] for key, kernel in kernels.items()):
        return first
    tuned = compilation.executable(kernels)
    comparison = compare_models(first.executor, tuned.executor, inputs, seed)
    chosen = tuned if comparison.is_faster else first
    chosen.comparison = comparison
    return chosen


def _records(base: BaseModel, tuning: ModelTuning) -> AbstractContextManager[TuningRecords]:
    """Open the trials of searches on this host."""
    return open_records(default_directory(), f"{base.fingerprint} {tuning.seed}")


def _programs(compilation: Compilation, first: Executable) -> list[TimedProgram]:
    """Return the programs of a model with their times under the first proposals."""
    secs = first.profile().secs_by_task()
    return [
        TimedProgram(task, compilation.first[key].candidate, secs[key])
        for key, task in compilation.tasks.items()
    ]


def _variants(compilation: Compilation, tried: Alternatives) -> list[Kernels]:
    """Return the first proposals, and kernels of the first alternatives, of the second, ..."""
    num_alternatives = max(map(len, tried.values()), default=0)
    variants: list[dict[str, ProposedKernel]] = [
        dict(compilation.first) for _ in range(1 + num_alternatives)
    ]
    for key, task in compilation.tasks.items():
        name = compilation.first[key].built.kernel.name
        for number, candidate in enumerate(tried.get(key, ()), start=1):
            try:
                built = build_candidate(task, candidate, name)
            except (BuildError, ScheduleError):
                continue  # it was recorded by another version
            variants[number][key] = ProposedKernel(built, candidate)
    return list(variants)


def _best_there(client: Client, task: Task) -> Candidate | None:
    try:
        best = client.best(task.func, target=task.target)
    except NotFoundError:
        return None
    return Candidate(_STORED_SKETCH, best.trace)

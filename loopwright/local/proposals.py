"""The most promising schedule of a task that can be built: nothing is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from compiler.backends.backend import host_labels
from compiler.backends.error import BuildError
from compiler.executor.artifact import Artifact
from compiler.schedule.error import ScheduleError
from compiler.target.target import Target, complete_target
from compiler.user_cache import default_directory
from loopwright.kernels.cached_build import build_kernel
from loopwright.workload import WorkloadLike, to_func
from tuner.candidate import Candidate, default_candidate
from tuner.replay import base_model
from tuner.search.first import first_candidates
from tuner.task import Task

NUM_PROPOSALS = 4
"""Proposals that are tried until one can be built, before the default schedule. Chosen."""

T = TypeVar("T")


def first_buildable(
    task: Task,
    build: Callable[[Candidate], T],
    *,
    seed: int = 0,
    cost_model: bytes | None = None,
) -> tuple[T, Candidate, str]:
    """Build the most promising candidate of a task that can be built.

    Returns:
        What was built, the candidate, and why it is the default schedule; empty if it is not.

    Raises:
        BuildError: If not even the default schedule can be built.
    """
    problem = "no schedule rule applies"
    for candidate in first_candidates(task, NUM_PROPOSALS, seed=seed, cost_model=cost_model):
        try:
            return build(candidate), candidate, ""
        except (BuildError, ScheduleError) as error:
            problem = str(error)
    default = default_candidate()
    return build(default), default, problem


def proposed_artifact(workload: WorkloadLike, target: Target | str) -> tuple[Artifact, str]:
    """Build the kernel that the base model proposes for a function; see `lw.kernel`.

    For a GPU, of which the base model has no measurement, an estimate proposes it.

    Returns:
        The kernel, and why it has the default schedule; empty if it does not.

    Raises:
        BuildError: If not even the default schedule can be built.
    """
    func = to_func(workload)
    goal = complete_target(target, host_labels)
    model = base_model.base_model(default_directory()).model if goal.kind == "cpu" else None
    artifact, _, problem = first_buildable(
        Task(func, goal),
        lambda candidate: build_kernel(func, goal, candidate.trace),
        cost_model=model,
    )
    return artifact, problem

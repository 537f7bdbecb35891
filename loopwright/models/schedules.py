"""A kernel for each program of a model, by the first proposal of the base model: not measured."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.backends.error import BuildError
from compiler.package.assemble import identifier
from compiler.package.build_kernel import CompiledKernel, build_kernel
from compiler.schedule.error import ScheduleError
from compiler.target.cpu import CpuTarget
from tuner.candidate import Candidate, default_candidate
from tuner.search.first import first_candidates
from tuner.task import Task

NUM_PROPOSALS = 4
"""Proposals that are tried until one can be built, before the default schedule. Chosen."""


@dataclass(frozen=True, slots=True)
class ProposedKernel:
    """A built kernel, its schedule, and why that is the default schedule; empty if it is not."""

    built: CompiledKernel
    candidate: Candidate
    problem: str = ""


def propose_kernel(
    task: Task, name: str, *, seed: int = 0, cost_model: bytes | None = None
) -> ProposedKernel:
    """Build the most promising candidate of a task that can be built.

    Raises:
        BuildError: If not even the default schedule can be built.
    """
    candidates = first_candidates(task, NUM_PROPOSALS, seed=seed, cost_model=cost_model)
    problem = "no schedule rule applies"
    for candidate in candidates:
        try:
            return ProposedKernel(build_candidate(task, candidate, name), candidate)
        except (BuildError, ScheduleError) as error:
            problem = str(error)
    default = default_candidate()
    return ProposedKernel(build_candidate(task, default, name), default, problem)


def build_candidate(task: Task, candidate: Candidate, name: str) -> CompiledKernel:
    """Build the kernel of a candidate.

    Raises:
        BuildError: If it can't be lowered, or is too large once expanded.
        ScheduleError: If an instruction of its trace is refused.
    """
    return build_kernel(
        candidate.trace.apply_to(task.func),
        CpuTarget.of(task.target),
        name=name,
        task=task.workload_key,
        sketch=candidate.sketch,
    )


def kernel_name(number: int, name: str) -> str:
    """Return the name of the kernel of a program in a model."""
    return f"k{number}_{identifier(name)}"

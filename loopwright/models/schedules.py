"""A kernel for each program of a model, by the first proposal of the base model: not measured."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.package.assemble import identifier
from compiler.package.build_kernel import CompiledKernel, build_kernel
from compiler.target.cpu import CpuTarget
from loopwright.local.proposals import first_buildable
from tuner.candidate import Candidate
from tuner.task import Task


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
    proposed = first_buildable(
        task,
        lambda candidate: build_candidate(task, candidate, name),
        seed=seed,
        cost_model=cost_model,
    )
    return ProposedKernel(*proposed)


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

"""Targets: the machines that kernels are compiled for, and the facts about them."""

from compiler.target.target import TARGET_KINDS, Target


def _load_cpu() -> type[Target]:
    # It loads LLVM, which targets of other kinds do without.
    from compiler.target.cpu import CpuTarget  # noqa: PLC0415

    return CpuTarget


TARGET_KINDS.provide("cpu", _load_cpu)

"""Targets: the machines that kernels are compiled for, and the facts about them."""

from compiler.target.target import TARGET_KINDS, Target


def _load_cpu() -> type[Target]:
    # It loads LLVM, which targets of other kinds do without.
    from compiler.target.cpu import CpuTarget  # noqa: PLC0415

    return CpuTarget


def _load_cuda() -> type[Target]:
    from compiler.target.cuda import CudaTarget  # noqa: PLC0415 - as above

    return CudaTarget


TARGET_KINDS.provide("cpu", _load_cpu)
TARGET_KINDS.provide("cuda", _load_cuda)

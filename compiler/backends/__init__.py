"""Backends: how programs become kernels, one folder a kind of target."""

from compiler.backends.backend import BACKENDS, Backend


def _load_cpu() -> Backend:
    # It loads LLVM, which backends of other kinds do without.
    from compiler.backends.cpu.backend import CpuBackend  # noqa: PLC0415

    return CpuBackend()


BACKENDS.provide("cpu", _load_cpu)

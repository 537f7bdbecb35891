"""Backends: they turn programs into kernels, one folder for each kind of target."""

from compiler.backends.backend import BACKENDS, Backend


def _load_cpu() -> Backend:
    # Imported on first use: it loads LLVM, which backends of other kinds do not need.
    from compiler.backends.cpu.backend import CpuBackend  # noqa: PLC0415

    return CpuBackend()


def _load_cuda() -> Backend:
    # Imported on first use, as that of CPUs: most hosts have no GPU.
    from compiler.backends.cuda.backend import CudaBackend  # noqa: PLC0415

    return CudaBackend()


BACKENDS.provide("cpu", _load_cpu)
BACKENDS.provide("cuda", _load_cuda)

"""Kernels for CPUs: object code that is linked into this process and called by address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import llvmlite.binding as llvm

from compiler.backends.cpu.runtime.cold_call import ColdCall
from compiler.backends.cpu.runtime.pool import pool_code
from compiler.backends.cpu.runtime.tile_permission import FEATURE, request_tiles
from compiler.backends.module import Module
from compiler.executor.artifact import Artifact
from compiler.executor.error import MachineError
from compiler.executor.kernel import LoadedKernel
from compiler.target.cpu import CpuTarget
from compiler.target.error import TargetError
from compiler.target.host import host_cpu, host_features


class CpuModule(LoadedKernel, Module):
    """A kernel for a CPU, with the methods of `Module`; see both.

    Raises:
        MachineError: If this host, or the CPU that it is reported as, can't run the artifact.
    """

    languages = ("ll", "asm")

    def __init__(
        self,
        artifact: Artifact,
        const_params: Mapping[str, Any] | None = None,
        source: str | None = None,
    ) -> None:
        _check_host(artifact)
        Module.__init__(self, artifact, const_params, source)
        LoadedKernel.__init__(self, artifact, const_params, pool_code)
        self._is_cold = CpuTarget(artifact.target).is_cold

    def __repr__(self) -> str:
        return Module.__repr__(self)

    def bind(self, *arrays: Any, num_threads: int | None = None) -> Callable[[], None]:
        """Return a function that runs the kernel on arrays; see `LoadedKernel`.

        For a target with `-cache=cold` it is a `ColdCall`.
        """
        run = super().bind(*arrays, num_threads=num_threads)
        return ColdCall(run, run.arrays) if self._is_cold else run  # type: ignore[attr-defined]


def _check_host(artifact: Artifact) -> None:
    """Refuse code that this host cannot run: an illegal instruction would kill the process."""
    if artifact.triple.split("-")[0] != llvm.get_process_triple().split("-")[0]:
        raise MachineError(
            f"{artifact.name} was built for {artifact.triple}:"
            f" this host is {llvm.get_process_triple()}"
        )
    offered = set(host_features().split(","))
    needed = (f for f in artifact.features.split(",") if f.startswith("+"))
    missing = [feature for feature in needed if feature not in offered]
    if missing:
        raise MachineError(
            f"{artifact.name} was built for {artifact.target}, which has {', '.join(missing)}:"
            f" this host is {host_cpu()} without"
        )
    try:
        CpuTarget(artifact.target)
    except TargetError as error:
        raise MachineError(f"{artifact.name} was built for another machine: {error}") from error
    if FEATURE in artifact.features.split(","):
        request_tiles()

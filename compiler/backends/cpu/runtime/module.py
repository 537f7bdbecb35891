"""Kernels for CPUs: object code that is linked into this process and called by address."""

from __future__ import annotations

import ctypes
import operator
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import llvmlite.binding as llvm
from numpy.typing import NDArray

from compiler.backends.cpu.codegen.module import ENTRY
from compiler.backends.cpu.runtime.cold_call import ColdCall
from compiler.backends.cpu.runtime.load import load_object
from compiler.backends.cpu.runtime.pool import launch_address
from compiler.backends.cpu.runtime.tile_permission import FEATURE, request_tiles
from compiler.backends.module import Module
from compiler.executor.arrays import ArrayCheck, check_overlaps
from compiler.executor.error import ArgumentError
from compiler.executor.memory import address_of, aligned_empty
from compiler.runtime.artifact import Artifact, ArtifactError
from compiler.target.cores import available_cores
from compiler.target.cpu import CpuTarget
from compiler.target.error import TargetError
from compiler.target.host import host_cpu, host_features

Array = NDArray[Any]
_bytes_of = ctypes.c_char.from_buffer


class CpuModule(Module):
    """A kernel for a CPU; see `Module`.

    Calls from several threads are safe: each thread has its own workspace. `num_threads` is
    the number of threads that the kernel was built for, or of available cores if that is less; it
    is 1 if no loop is parallel. `close()` unloads the code after the calls in progress have ended.

    Raises:
        ArtifactError: If this host cannot run the code of the artifact.
    """

    languages = ("ll", "asm")

    def __init__(
        self,
        artifact: Artifact,
        const_params: Mapping[str, Any] | None = None,
        source: str | None = None,
    ) -> None:
        _check_host(artifact)
        super().__init__(artifact, const_params, source)
        self._constant_addresses = list(map(address_of, self._constants))
        self.num_threads = min(artifact.num_threads, available_cores())
        self._checks = tuple(ArrayCheck(param) for param in self.params)
        self._outputs = [position for position, param in enumerate(self.params) if param.is_output]
        self._pack = struct.Struct(f"{len(artifact.params) + 3}Q").pack
        self._local = threading.local()
        self._entry: Callable[[bytes | int], None] | None = _load(artifact)
        self._launch = launch_address() if artifact.num_threads > 1 else 0
        self._is_cold = CpuTarget(artifact.target).is_cold

    def __call__(self, *arrays: Any, num_threads: int | None = None) -> None:
        """Run the kernel.

        Args:
            arrays: One array for each parameter.
            num_threads: The threads to use at most, `self.num_threads` by default. It uses no more
                than the kernel was built for.

        Raises:
            ArgumentError: If an array has the wrong number, shape, dtype or layout, if an output
                is read-only, if an output overlaps another array, or if there are no threads.
        """
        entry = self._open()
        _checked, addresses = self._located(arrays)
        entry(self._pack(*addresses, self._workspace(), self._limited(num_threads), self._launch))

    def bind(self, *arrays: Any, num_threads: int | None = None) -> Callable[[], None]:
        """Check the arrays once, and return a function that runs the kernel on them.

        The function has its own workspace, so only one thread at a time may call it. It still works
        after the module is closed. For a target with `-cache=cold` it is a `ColdCall`.

        Raises:
            ArgumentError: As a call does.
        """
        entry = self._open()
        checked, addresses = self._located(arrays)
        workspace = aligned_empty((self.artifact.workspace_bytes,), "uint8")
        threads = self._limited(num_threads)
        words = bytearray(self._pack(*addresses, address_of(workspace), threads, self._launch))
        first_byte = _bytes_of(words)
        run = partial(entry, ctypes.addressof(first_byte))
        # The kernel reads addresses: the function holds references to the memory behind them.
        run.references = (checked, self._constants, first_byte, workspace)  # type: ignore[attr-defined]
        return ColdCall(run, [*checked, *self._constants, workspace]) if self._is_cold else run

    def close(self) -> None:
        """Unload the code as soon as no call is in progress; a second call does nothing."""
        self._entry = None

    def _open(self) -> Callable[[bytes | int], None]:
        if self._entry is None:
            raise ArgumentError(f"{self.artifact.name} was closed")
        return self._entry

    def _located(self, arrays: Sequence[Any]) -> tuple[list[Array], list[int]]:
        """Check the arrays; return them, and the addresses of all buffers of the kernel."""
        self._require_arrays(arrays)
        checked = list(map(ArrayCheck.array, self._checks, arrays))
        addresses = list(map(address_of, checked))
        check_overlaps(self._checks, addresses, self._outputs)
        return checked, addresses + self._constant_addresses

    def _limited(self, num_threads: int | None) -> int:
        if num_threads is None:
            return self.num_threads
        threads = operator.index(num_threads)
        if threads < 1:
            raise ArgumentError(f"num_threads is {threads}: expected 1 or more")
        return min(threads, self.artifact.num_threads)

    def _workspace(self) -> int:
        """Return the address of this thread's workspace."""
        try:
            return int(self._local.address)
        except AttributeError:
            workspace = aligned_empty((self.artifact.workspace_bytes,), "uint8")
            self._local.workspace, self._local.address = workspace, address_of(workspace)
            return address_of(workspace)


def _load(artifact: Artifact) -> Callable[[bytes | int], None]:
    """Link an object into the process; return its entry, which keeps the code loaded."""
    try:
        engine = load_object(artifact.code, artifact.triple)
    except RuntimeError as error:
        raise ArtifactError(f"the artifact of {artifact.name} can't be loaded: {error}") from error
    address = engine.get_function_address(ENTRY)
    if not address:
        raise ArtifactError(f"the artifact of {artifact.name} has no entry {ENTRY!r}")
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
    # A caller holds a reference to the entry, so the code outlives every call.
    entry.engine = engine  # type: ignore[attr-defined]
    return entry


def _check_host(artifact: Artifact) -> None:
    """Refuse code that this host cannot run: an illegal instruction would kill the process."""
    if artifact.triple.split("-")[0] != llvm.get_process_triple().split("-")[0]:
        raise ArtifactError(
            f"{artifact.name} was built for {artifact.triple}:"
            f" this host is {llvm.get_process_triple()}"
        )
    offered = set(host_features().split(","))
    needed = (f for f in artifact.features.split(",") if f.startswith("+"))
    missing = [feature for feature in needed if feature not in offered]
    if missing:
        raise ArtifactError(
            f"{artifact.name} was built for {artifact.target}, which has {', '.join(missing)}:"
            f" this host is {host_cpu()} without"
        )
    try:
        CpuTarget(artifact.target)
    except TargetError as error:
        raise ArtifactError(f"{artifact.name} was built for another machine: {error}") from error
    if FEATURE in artifact.features.split(","):
        request_tiles()

"""Modules: loaded kernels that are called with arrays."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from compiler.codegen.machine_code import initialize
from compiler.codegen.module import ENTRY
from compiler.runtime.artifact import Artifact, ArtifactError, Param
from compiler.target import Target, TargetError, host_cpu, host_features

Array = NDArray[Any]
_ALIGNMENT = 64


class ArgumentError(TypeError):
    """Arrays that do not fit the kernel's parameters."""


class Module:
    """A kernel in memory: call it with one array a parameter, in order; it writes outputs in place.

    It takes NumPy arrays, and whatever speaks DLPack on the CPU. Calls from several threads are
    safe: each thread has a workspace of its own. `close()` unloads the code.

    Raises:
        ArtifactError: If the artifact is for a machine that this host is not.
    """

    def __init__(self, artifact: Artifact) -> None:
        _check_host(artifact)
        self.artifact = artifact
        self.params = artifact.params
        try:
            self.num_threads = Target(artifact.target).num_cores
        except TargetError as error:
            raise ArtifactError(
                f"{artifact.name} was built for another machine: {error}"
            ) from error
        self._local = threading.local()
        self._engine, entry = _load(artifact)
        self._entry: Callable[[int], None] | None = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(entry)

    @classmethod
    def load(cls, path: str | Path) -> Module:
        """Load an artifact from a file.

        Raises:
            ArtifactError: If the file is no artifact, or not for this host.
            OSError: If it can't be read.
        """
        return cls(Artifact.load(path))

    def save(self, path: str | Path) -> None:
        """Write the kernel to a file that `load` reads, in another process too."""
        self.artifact.save(path)

    def __call__(self, *arrays: Any) -> None:
        """Run the kernel.

        Raises:
            ArgumentError: If an array has the wrong number, shape, dtype or layout, if an output
                is read-only, or if an output overlaps another array.
        """
        self.bind(*arrays)()

    def bind(self, *arrays: Any) -> Callable[[], None]:
        """Check the arrays once, and return a function that runs the kernel on them."""
        checked = [_as_array(p, a) for p, a in zip(self.params, arrays, strict=False)]
        if len(arrays) != len(self.params):
            names = ", ".join(p.name for p in self.params)
            raise ArgumentError(
                f"{self.artifact.name} takes {len(self.params)} arrays ({names}): got {len(arrays)}"
            )
        _check_overlap(self.params, checked)
        entry = self._entry
        if entry is None:
            raise ArgumentError(f"{self.artifact.name} was closed")
        workspace = self._workspace()
        addresses = [a.ctypes.data for a in checked]
        packed = np.array([*addresses, workspace.ctypes.data, self.num_threads], dtype=np.uint64)
        address = packed.ctypes.data

        def run() -> None:
            entry(address)

        # The function keeps what it points at alive.
        run.keeps = (checked, packed, workspace, self)  # type: ignore[attr-defined]
        return run

    def close(self) -> None:
        """Unload the code; a second call does nothing."""
        if self._entry is not None:
            self._entry = None
            self._engine.close()

    def _workspace(self) -> NDArray[np.uint8]:
        known: NDArray[np.uint8] | None = getattr(self._local, "workspace", None)
        if known is None:
            known = self._local.workspace = aligned_empty((self.artifact.workspace_bytes,), "uint8")
        return known


def aligned_empty(shape: Sequence[int], dtype: str) -> Array:
    """Return an uninitialised array that starts at a cache line."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.empty(size + _ALIGNMENT, dtype=np.uint8)
    offset = -raw.ctypes.data % _ALIGNMENT
    return raw[offset : offset + size].view(kind).reshape(shape)


def _load(artifact: Artifact) -> tuple[llvm.ExecutionEngine, int]:
    """Link an object into the process; return its engine and the address of its entry."""
    initialize()
    machine = llvm.Target.from_triple(artifact.triple).create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    try:
        engine.add_object_file(llvm.ObjectFileRef.from_data(artifact.object_code))
        engine.finalize_object()
        entry = engine.get_function_address(ENTRY)
    except RuntimeError as error:
        engine.close()
        raise ArtifactError(f"the artifact of {artifact.name} can't be loaded: {error}") from error
    if not entry:
        engine.close()
        raise ArtifactError(f"the artifact of {artifact.name} has no entry {ENTRY!r}")
    return engine, int(entry)


def _check_host(artifact: Artifact) -> None:
    """Refuse code that this host can't run, which would otherwise kill the process."""
    if artifact.triple.split("-")[0] != llvm.get_process_triple().split("-")[0]:
        raise ArtifactError(
            f"{artifact.name} was built for {artifact.triple}:"
            f" this host is {llvm.get_process_triple()}"
        )
    here = set(host_features().split(","))
    missing = [f for f in artifact.features.split(",") if f.startswith("+") and f not in here]
    if missing:
        raise ArtifactError(
            f"{artifact.name} was built for {artifact.target}, which has {', '.join(missing)}:"
            f" this host is {host_cpu()} without"
        )


def _as_array(param: Param, array: Any) -> Array:
    if not isinstance(array, np.ndarray):
        if not hasattr(array, "__dlpack__"):
            raise ArgumentError(
                f"parameter {param.name} is a {type(array).__name__}: expected an array"
            )
        array = np.from_dlpack(array)
    assert isinstance(array, np.ndarray)
    if array.shape != param.shape or array.dtype != np.dtype(param.dtype):
        raise ArgumentError(
            f"parameter {param.name} is {array.dtype}{list(array.shape)}:"
            f" expected {param.dtype}{list(param.shape)}"
        )
    if not array.flags.c_contiguous:
        raise ArgumentError(
            f"parameter {param.name} is not contiguous: pass np.ascontiguousarray(...)"
        )
    if param.is_output and not array.flags.writeable:
        raise ArgumentError(f"parameter {param.name} is written, and the array is read-only")
    return array


def _check_overlap(params: Sequence[Param], arrays: Sequence[Array]) -> None:
    spans = [(a.ctypes.data, a.ctypes.data + a.nbytes) for a in arrays]
    for i, (low, high) in enumerate(spans):
        if not params[i].is_output:
            continue
        for j, (other_low, other_high) in enumerate(spans):
            if i != j and low < other_high and other_low < high:
                raise ArgumentError(
                    f"parameter {params[i].name} is written,"
                    f" and overlaps parameter {params[j].name}"
                )

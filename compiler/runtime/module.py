"""Modules: loaded kernels that are called with arrays."""

from __future__ import annotations

import ctypes
import math
import operator
import struct
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.backends.cpu.codegen.module import ENTRY
from compiler.backends.cpu.runtime.load import load_object
from compiler.backends.cpu.runtime.pool import launch_address
from compiler.runtime.artifact import Artifact, ArtifactError, describe_kernel
from compiler.runtime.param_check import ArgumentError, ParamCheck
from compiler.runtime.time_calls import calls_per_sample, time_calls
from compiler.runtime.timing import Timing
from compiler.target.cores import available_cores
from compiler.target.cpu import CpuTarget
from compiler.target.error import TargetError
from compiler.target.host import host_cpu, host_features

__all__ = ["ArgumentError", "Module", "aligned_empty"]

Array = NDArray[Any]
_ALIGNMENT = 64
_bytes_of = ctypes.c_char.from_buffer


class Module:
    """A kernel in memory: call it with one array a parameter, in order; it writes outputs in place.

    It takes NumPy arrays, and whatever speaks DLPack on the CPU. Calls from several threads are
    safe: each thread has a workspace of its own. `num_threads` says how many threads a call uses at
    most: as many as the kernel was built for, and as there are cores; 1 if no loop of it is
    parallel. `close()` unloads the code, once the calls that use it have ended.

    Args:
        constants: Arrays for the last parameters, which callers do not pass then.
        source: The LLVM IR that the kernel was compiled from, if it is known.

    Raises:
        ArtifactError: If the artifact is for a machine that this host is not.
    """

    def __init__(
        self, artifact: Artifact, constants: Sequence[Array] = (), source: str | None = None
    ) -> None:
        _check_host(artifact)
        self.artifact = artifact
        self._source = source
        self.params = artifact.params[: len(artifact.params) - len(constants)]
        self._constants = tuple(constants)
        self._fixed = list(map(_address, constants))
        self.num_threads = min(artifact.num_threads, available_cores())
        self._checks = tuple(ParamCheck(param) for param in self.params)
        self._outputs = [place for place, param in enumerate(self.params) if param.is_output]
        self._pack = struct.Struct(f"{len(artifact.params) + 3}Q").pack
        self._local = threading.local()
        self._entry: Callable[[bytes | int], None] | None = _load(artifact)
        self._launch = launch_address() if artifact.num_threads > 1 else 0

    def __repr__(self) -> str:
        signature = describe_kernel(self.artifact.name, self.params)
        return f"<Module {signature} for {self.artifact.target}>"

    @classmethod
    def load(cls, path: str | Path) -> Module:
        """Load an artifact from a file.

        Raises:
            ArtifactError: If the file is no artifact, or not for this host.
            OSError: If it can't be read.
        """
        return cls(Artifact.load(path))

    def save(self, path: str | Path) -> None:
        """Write the kernel to a file that `load` reads, in another process too.

        Raises:
            ArtifactError: If it has constants: a file holds code, and no data.
        """
        if self._constants:
            raise ArtifactError(f"{self.artifact.name} has constants: a file holds no data")
        self.artifact.save(path)

    def __call__(self, *arrays: Any, num_threads: int | None = None) -> None:
        """Run the kernel.

        Args:
            arrays: One a parameter.
            num_threads: How many threads to use at most, if not `self.num_threads`; more than the
                kernel was built for are not used.

        Raises:
            ArgumentError: If an array has the wrong number, shape, dtype or layout, if an output
                is read-only, if an output overlaps another array, or if there are no threads.
        """
        entry = self._open()
        _held, addresses = self._located(arrays)
        entry(self._pack(*addresses, self._workspace(), self._at_most(num_threads), self._launch))

    def bind(self, *arrays: Any, num_threads: int | None = None) -> Callable[[], None]:
        """Check the arrays once, and return a function that runs the kernel on them.

        The function has a workspace of its own: one thread at a time may call it. It works on when
        the module is closed.

        Raises:
            ArgumentError: As a call does.
        """
        entry = self._open()
        checked, addresses = self._located(arrays)
        workspace = aligned_empty((self.artifact.workspace_bytes,), "uint8")
        threads = self._at_most(num_threads)
        words = bytearray(self._pack(*addresses, _address(workspace), threads, self._launch))
        at = _bytes_of(words)
        run = partial(entry, ctypes.addressof(at))
        # The function keeps what it points at alive.
        run.keeps = (checked, self._constants, at, workspace)  # type: ignore[attr-defined]
        return run

    def __getitem__(self, name: str) -> Module:
        """Return the function of a name: this kernel, the only one, by the name of its program.

        Raises:
            KeyError: If it has another name.
        """
        if name != self.artifact.name:
            raise KeyError(f"there is no function {name!r}: the kernel is {self.artifact.name!r}")
        return self

    def time_evaluator(
        self,
        func_name: str | None = None,
        dev: object = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
    ) -> Callable[..., Timing]:
        """Return a function that times the kernel on arrays, as TVM spells it.

        Args:
            func_name: The name of the kernel; none is needed.
            dev: Taken for the sake of TVM's users: kernels run on the CPU.
            number: How many calls a sample is the mean of.
            repeat: How many samples.
            min_repeat_ms: The least time of a sample: as many calls as it takes.

        Raises:
            KeyError: If the kernel has another name.
            ValueError: If there is nothing to count.
        """
        del dev
        if func_name is not None:
            self[func_name]
        if number < 1 or repeat < 1:
            raise ValueError(f"number is {number}, repeat is {repeat}: expected 1 or more")

        def evaluate(*arrays: Any) -> Timing:
            run = self.bind(*arrays)
            run()
            least = calls_per_sample(run, self.num_threads, min_repeat_ms / 1e3)
            calls = max(number, least if min_repeat_ms else 1)
            return Timing(tuple(time_calls(run, self.num_threads, calls) for _ in range(repeat)))

        return evaluate

    def get_source(self, fmt: str = "ll") -> str:
        """Return what the kernel was compiled from, or to.

        Args:
            fmt: "ll" for LLVM IR, "asm" for assembly.

        Raises:
            ValueError: If there is no such format, or the kernel was loaded from a file, which
                holds machine code only.
        """
        if fmt not in ("", "ll", "asm"):
            raise ValueError(f'there is no source of format {fmt!r}: expected "ll" or "asm"')
        if self._source is None:
            raise ValueError(
                f"{self.artifact.name} was loaded as machine code, without its source: "
                "build the program to see it"
            )
        if fmt == "asm":
            return disassemble(self._source, CpuTarget(self.artifact.target))
        return self._source

    def export_library(self, path: str | Path) -> None:
        """Write the kernel to a file that `Module.load` reads; see `save`."""
        self.save(path)

    def close(self) -> None:
        """Unload the code, as soon as no call is under way; a second call does nothing."""
        self._entry = None

    def _open(self) -> Callable[[bytes | int], None]:
        if self._entry is None:
            raise ArgumentError(f"{self.artifact.name} was closed")
        return self._entry

    def _located(self, arrays: Sequence[Any]) -> tuple[list[Array], list[int]]:
        """Return the arrays that stand for the parameters, and their addresses."""
        if len(arrays) != len(self.params):
            names = ", ".join(p.name for p in self.params)
            raise ArgumentError(
                f"{self.artifact.name} takes {len(self.params)} arrays ({names}): got {len(arrays)}"
            )
        checked = list(map(ParamCheck.array, self._checks, arrays))
        addresses = list(map(_address, checked))
        for place in self._outputs:
            _check_overlap(self._checks, addresses, place)
        return checked, addresses + self._fixed

    def _at_most(self, num_threads: int | None) -> int:
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
            self._local.workspace, self._local.address = workspace, _address(workspace)
            return _address(workspace)


def aligned_empty(shape: Sequence[int], dtype: str) -> Array:
    """Return an uninitialised array that starts at a cache line.

    Kernels that do little with each element are faster on such arrays than on NumPy's own, whose
    vectors lie across two lines: `layer_norm` of 1024 x 768 by a fifth on Zen 3.

    Args:
        shape: The extents.
        dtype: The name of the element type, such as `"float32"`.
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    raw = np.empty(size + _ALIGNMENT, dtype=np.uint8)
    offset = -_address(raw) % _ALIGNMENT
    return raw[offset : offset + size].view(kind).reshape(shape)


def _load(artifact: Artifact) -> Callable[[bytes | int], None]:
    """Link an object into the process; return its entry, with which the code lives."""
    try:
        engine = load_object(artifact.object_code, artifact.triple)
    except RuntimeError as error:
        raise ArtifactError(f"the artifact of {artifact.name} can't be loaded: {error}") from error
    address = engine.get_function_address(ENTRY)
    if not address:
        raise ArtifactError(f"the artifact of {artifact.name} has no entry {ENTRY!r}")
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
    # Whoever calls the entry holds it, so the code outlives every call.
    entry.engine = engine  # type: ignore[attr-defined]
    return entry


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
    try:
        CpuTarget(artifact.target)
    except TargetError as error:
        raise ArtifactError(f"{artifact.name} was built for another machine: {error}") from error


def _address(array: Array) -> int:
    """Return where a contiguous array begins."""
    try:
        # A quarter of the time that `array.ctypes` takes.
        return ctypes.addressof(_bytes_of(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # it is read-only, empty, or of a type that buffers lack
        return int(array.ctypes.data)


def _check_overlap(checks: Sequence[ParamCheck], addresses: Sequence[int], written: int) -> None:
    low = addresses[written]
    high = low + checks[written].size_bytes
    for other, (check, address) in enumerate(zip(checks, addresses, strict=True)):
        if address < high and low < address + check.size_bytes and other != written:
            raise ArgumentError(
                f"parameter {checks[written].param.name} is written,"
                f" and overlaps parameter {check.param.name}"
            )

"""Loaded kernels: the code of an artifact for a CPU, called by address without a compiler."""

from __future__ import annotations

import ctypes
import operator
import os
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .arrays import ArrayCheck, check_overlaps
from .artifact import Artifact
from .cores import available_cores
from .cpu_flags import cpu_flags
from .dtypes import numpy_dtype
from .error import ArgumentError, ArtifactError, PackageError
from .functions.call_plan import CallPlanRunner
from .loaded_code import LoadedCode
from .machine import check_machine
from .memory import address_of, aligned_zeros
from .params import ENTRY, describe_kernel
from .pool import PROCESS_POOL
from .symbolic_calls import SymbolicCalls

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
BACKEND = "cpu"
"""The backend whose artifacts a process loads without a compiler."""
_bytes_of = ctypes.c_char.from_buffer


class LoadedKernel:
    """A kernel in memory: call it with one array a parameter, in order; it writes outputs in place.

    It takes NumPy arrays, and any array that supports DLPack. Symbolic extents are taken from the
    arrays; a parameter that is a number takes one. Calls from several threads are safe:
    each thread has its own workspace. `num_threads` is the number of threads that the kernel was
    built for, or of available cores if that is less; it is 1 if no loop is parallel. `close()`
    unloads the code after the calls in progress have ended.

    Args:
        artifact: The kernel.
        const_params: An array for each constant parameter of the artifact, by name. They are packed
            now, and calls omit them. Later changes of these arrays do not matter.
        pool: Returns the object code of a pool of threads, by default that of the artifact. It is
            called only if this process has no pool yet.

    Raises:
        ArtifactError: If this machine can't run the code of the artifact.
        UnknownFunctionError: If it calls a function that is not registered here.
        ArgumentError: If a constant is missing, is not a constant of this kernel, or does not have
            the shape and the type of its parameter.
    """

    def __init__(
        self,
        artifact: Artifact,
        const_params: Mapping[str, Any] | None = None,
        pool: Callable[[], bytes] | None = None,
    ) -> None:
        self.artifact = artifact
        self.params = artifact.arguments
        self._entry: Callable[[bytes | int], None] | None = _load(artifact)
        self._constants = _pack_constants(artifact, const_params or {})
        self._constant_addresses = list(map(address_of, self._constants))
        arrays = [param for param in self.params if not param.is_scalar]
        self._checks = tuple(map(ArrayCheck, arrays))
        self._outputs = [position for position, param in enumerate(arrays) if param.is_output]
        self._sizes = SymbolicCalls(artifact, self._checks) if artifact.is_symbolic else None
        num_words = len(artifact.params) + len(artifact.symbols) + 3
        self._pack = struct.Struct(f"{num_words}Q").pack
        self._local = threading.local()
        size = artifact.workspace_bytes
        self._fixed_workspace = size if isinstance(size, int) else 0
        self._launch = _launch(artifact, pool)
        self.num_threads = min(artifact.num_threads, available_cores())

    def __repr__(self) -> str:
        signature = describe_kernel(self.artifact.name, self.params)
        return f"<LoadedKernel {signature} for {self.artifact.target}>"

    def __call__(self, *arrays: Any, num_threads: int | None = None) -> None:
        """Run the kernel.

        Args:
            arrays: One array for each parameter.
            num_threads: The threads to use at most, `self.num_threads` by default. It uses no more
                than the kernel was built for.

        Raises:
            ArgumentError: If an array has the wrong number, shape, dtype or layout, if an output
                is read-only, if an output overlaps another array, or if there are no threads.
            LibraryCallError: If a registered function that it calls raised an exception.
        """
        entry = self._open()
        _checked, words, size = self._located(arrays)
        workspace, threads = self._workspace(size), self._limited(num_threads)
        entry(self._pack(*words, workspace, threads, self._launch))

    def bind(self, *arrays: Any, num_threads: int | None = None) -> Callable[[], None]:
        """Check the arrays once, and return a function that runs the kernel on them.

        The function has its own workspace, so only one thread at a time may call it. It still works
        after the kernel is closed.

        Raises:
            ArgumentError: As a call does.
        """
        entry = self._open()
        checked, words, size = self._located(arrays)
        workspace = aligned_zeros((size,), "uint8")
        threads = self._limited(num_threads)
        packed = bytearray(self._pack(*words, address_of(workspace), threads, self._launch))
        first_byte = _bytes_of(packed)
        run = partial(entry, ctypes.addressof(first_byte))
        # The kernel reads addresses: the function holds references to the memory behind them.
        run.words = first_byte  # type: ignore[attr-defined]
        run.arrays = (*checked, *self._constants, workspace)  # type: ignore[attr-defined]
        return run

    def close(self) -> None:
        """Unload the code as soon as no call is in progress; a second call does nothing."""
        self._entry = None

    def _open(self) -> Callable[[bytes | int], None]:
        if self._entry is None:
            raise ArgumentError(f"{self.artifact.name} was closed")
        return self._entry

    def _located(self, arrays: Sequence[Any]) -> tuple[list[Array], Sequence[int], int]:
        """Check the arguments.

        Returns:
            The arrays, the words that the kernel takes for its parameters and symbolic extents, and
            the size of its workspace.
        """
        if len(arrays) != len(self.params):
            raise wrong_number(self.artifact, len(arrays))
        if self._sizes is not None:
            call = self._sizes.call(arrays)
            check_overlaps(self._checks, call.addresses, self._outputs, call.arrays)
            words = (*call.words, *self._constant_addresses, *call.size.values)
            return call.arrays, words, call.size.workspace_bytes
        checked = list(map(ArrayCheck.array, self._checks, arrays))
        addresses = list(map(address_of, checked))
        check_overlaps(self._checks, addresses, self._outputs)
        return checked, addresses + self._constant_addresses, self._fixed_workspace

    def _limited(self, num_threads: int | None) -> int:
        if num_threads is None:
            return self.num_threads
        threads = operator.index(num_threads)
        if threads < 1:
            raise ArgumentError(f"num_threads is {threads}: expected 1 or more")
        return min(threads, self.artifact.num_threads)

    def _workspace(self, size_bytes: int) -> int:
        """Return the address of this thread's workspace, of at least this size."""
        local = self._local
        if getattr(local, "size_bytes", -1) < size_bytes:
            local.workspace = aligned_zeros((size_bytes,), "uint8")
            local.address, local.size_bytes = address_of(local.workspace), size_bytes
        return int(local.address)


def load_kernel(
    path: str | os.PathLike[str], const_params: Mapping[str, Any] | None = None
) -> LoadedKernel:
    """Load a kernel for a CPU from a file: what `lw.build(...).save` wrote.

    It imports no compiler, so it takes a few milliseconds. `lw.Module.load` also loads kernels for
    GPUs, and returns a module with the methods of TVM's modules. A kernel runs machine code: load
    only artifacts from sources that you trust.

    Args:
        path: The file.
        const_params: An array for each constant parameter, by name.

    Raises:
        ArtifactError: If the file is not an artifact, or this machine can't run it.
        ArgumentError: If the constants do not fit the kernel.
        OSError: If it can't be read.
    """
    return LoadedKernel(Artifact.load(path), const_params)


def _load(artifact: Artifact) -> Callable[[bytes | int], None]:
    """Link an object into the process; return its entry, which keeps the code loaded."""
    if artifact.plan is not None:
        entries = [_load(part) for part in artifact.parts]
        return CallPlanRunner(artifact.name, artifact.plan, len(artifact.params), entries)
    if artifact.backend != BACKEND:
        raise ArtifactError(
            f"{artifact.name} was built for {artifact.target}: only Module.load of the compiler"
            f" loads artifacts of the backend {artifact.backend!r}"
        )
    try:
        arch = artifact.triple.split("-")[0]
        check_machine(artifact.name, arch, cpu_flags(artifact.features, arch))
        code = LoadedCode(artifact.code)
        address = code.address(ENTRY)
    except PackageError as error:
        raise ArtifactError(f"the artifact of {artifact.name} can't be loaded: {error}") from error
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
    # A caller holds a reference to the entry, so the code outlives every call.
    entry.code = code  # type: ignore[attr-defined]
    return entry


def _launch(artifact: Artifact, pool: Callable[[], bytes] | None) -> int:
    """Return the address of the function that runs parallel loops; 0 for a kernel without them."""
    if all(code.num_threads == 1 for code in artifact.parts or (artifact,)):
        return 0
    if pool is None and not artifact.pool:
        raise ArtifactError(
            f"the artifact of {artifact.name} uses threads, and an older version wrote it without a"
            " pool of threads: build it again, or load it by Module.load"
        )
    return PROCESS_POOL.launch(pool or (lambda: artifact.pool))


def wrong_number(artifact: Artifact, num_arrays: int) -> ArgumentError:
    """Return the error for a call with too many or too few arrays."""
    params = artifact.arguments
    names = ", ".join(param.name for param in params)
    message = f"takes {len(params)} arrays ({names}): got {num_arrays}"
    if artifact.constants:
        constants = ", ".join(param.name for param in artifact.constants)
        message += f"; the constants ({constants}) were passed when the kernel was loaded"
    return ArgumentError(f"{artifact.name} {message}")


def require_constants(artifact: Artifact, const_params: Mapping[str, Any]) -> None:
    """Require an array for each constant of a kernel, and no others.

    Raises:
        ArgumentError: If one is missing or unknown.
    """
    names = [param.name for param in artifact.constants]
    for problem, wrong in (
        ("lacks", [name for name in names if name not in const_params]),
        ("has", [name for name in const_params if name not in names]),
    ):
        if wrong:
            constants = f"the constants {', '.join(names)}" if names else "no constants"
            raise ArgumentError(
                f"{artifact.name} takes {constants}: const_params {problem} {', '.join(wrong)}"
            )


def _pack_constants(artifact: Artifact, const_params: Mapping[str, Any]) -> tuple[Array, ...]:
    """Return the arrays that follow the arguments of a kernel: constants, then packed copies.

    Raises:
        ArgumentError: If the constants do not fit the kernel.
    """
    require_constants(artifact, const_params)
    if artifact.packer is None:
        return ()
    names = [param.name for param in artifact.constants]
    arrays = [ArrayCheck(param).array(const_params[param.name]) for param in artifact.constants]
    copies = [
        aligned_zeros(param.shape, numpy_dtype(param.dtype)) for param in artifact.packed_copies
    ]
    for copy in copies:
        copy.fill(0)  # elements beyond the end are read, though never used
    LoadedKernel(artifact.packer)(*arrays, *copies)
    num_direct = len(artifact.params) - len(artifact.arguments) - len(copies)
    direct_names = {param.name for param in artifact.params[len(artifact.arguments) :][:num_direct]}
    direct = [np.array(a) for a, name in zip(arrays, names, strict=True) if name in direct_names]
    return (*direct, *copies)

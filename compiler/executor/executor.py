"""Executors: a loaded model that is called with arrays."""

from __future__ import annotations

import ctypes
import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .arrays import ArrayCheck, check_overlaps
from .cores import available_cores
from .error import ArgumentError, PackageError
from .loaded_code import LoadedCode
from .machine import check_machine
from .memory import address_of, aligned_empty, aligned_zeros
from .named_type import named_type
from .package import ALIGNMENT, OBJECT, POOL, WEIGHTS, Package
from .params import Param
from .pool import PROCESS_POOL

Array = NDArray[Any]
Arrays: TypeAlias = "Mapping[str, Any] | list[Any] | tuple[Any, ...]"
"""Arrays by name, or all of them in the order of the model."""

# inputs, outputs, arena, weights, workspace, threads, launch
_RUN = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, ctypes.c_int64, ctypes.c_void_p)


class _Scratch:
    """The arena and the workspace of one call at a time."""

    def __init__(self, package: Package) -> None:
        try:
            self.arena = aligned_empty((package.arena_bytes,), "uint8")
            self.workspace = aligned_zeros((package.workspace_bytes,), "uint8")
        except MemoryError as error:
            num_bytes = package.arena_bytes + package.workspace_bytes
            raise PackageError(
                f"a run of {package.name} needs {num_bytes} bytes of memory, which this process"
                " can't get"
            ) from error
        self.addresses = (address_of(self.arena), address_of(self.workspace))


class Executor:
    """A model in memory.

    Calls from several threads are safe: they take turns, because an executor has one arena. For
    calls at the same time, each thread binds its own function, which has its own arena.

    Args:
        package: The model.
        num_threads: The maximum number of threads of a call, by default as many as the model was
            built for and this process may use.

    Raises:
        PackageError: If this machine can't run it.
        ArgumentError: If `num_threads` is less than 1.
    """

    def __init__(self, package: Package, *, num_threads: int | None = None) -> None:
        check_machine(package.name, package.arch, package.cpu_flags)
        self.package = package
        self.inputs = package.inputs
        self.outputs = package.outputs
        self.num_threads = _threads(package, num_threads)
        self._code = LoadedCode(bytes(package.files[OBJECT]))
        self._run = _RUN(self._code.address(f"{package.name}_run"))
        self._launch = self._pool()
        self._weights = _aligned(package.files[WEIGHTS])
        self._weights_address = address_of(self._weights)
        self._checks = tuple(map(ArrayCheck, (*self.inputs, *self.outputs)))
        self._lock = threading.Lock()
        self._scratch = _Scratch(package)
        self._set: dict[str, Array] = {}
        self._results: dict[str, Array] = {}

    def __repr__(self) -> str:
        parts = (", ".join(map(_described, arrays)) for arrays in (self.inputs, self.outputs))
        return f"<Executor {self.package.name}({') -> ('.join(parts)})>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: machine code has its place in this process."""
        refuse_pickling(self.package)

    def run(
        self, inputs: Arrays | None = None, outputs: Arrays | None = None, **named: Any
    ) -> dict[str, Array]:
        """Run the model, and return its outputs by name.

        Args:
            inputs: The inputs; by default those that `set_input` was called with.
            outputs: Arrays to write to, by default new ones.
            named: Inputs as keywords, instead of a dictionary or beside it.

        Raises:
            ArgumentError: If an array is missing or unknown, has the wrong shape, dtype or layout,
                or if an output is read-only or overlaps another array.
        """
        if named:
            if isinstance(inputs, list | tuple):
                raise ArgumentError("inputs are given in order and by name: expected one of both")
            inputs = {**(inputs or {}), **named}
        with self._lock:
            given = self._set if inputs is None else inputs
            arrays, addresses = self._located(given, self._fresh() if outputs is None else outputs)
            self._call(arrays, addresses, self._scratch)()
            self._results = {
                array.name: value
                for array, value in zip(self.outputs, arrays[len(self.inputs) :], strict=True)
            }
            return dict(self._results)

    def set_input(self, name: str, array: Any) -> None:
        """Copy an array into an input of the next calls of `run` without arguments.

        Raises:
            ArgumentError: If there is no such input, or the array does not fit it.
        """
        names = [each.name for each in self.inputs]
        if name not in names:
            raise ArgumentError(f"{name!r} is not an input: expected {', '.join(names)}")
        check = self._checks[names.index(name)]
        with self._lock:
            self._set[name] = np.array(check.array(array))

    def get_output(self, name: str) -> Array:
        """Return an output of the last call of `run`.

        Raises:
            ArgumentError: If there is no such output, or the model did not run yet.
        """
        names = [each.name for each in self.outputs]
        if name not in names:
            raise ArgumentError(f"{name!r} is not an output: expected {', '.join(names)}")
        if name not in self._results:
            raise ArgumentError(f"{self.package.name} did not run yet: call run first")
        return self._results[name]

    def bind(self, inputs: Arrays, outputs: Arrays) -> Callable[[], None]:
        """Check the arrays once, and return a function that runs the model on them.

        The function has its own arena, so several bound functions may run at the same time; only
        one thread at a time may call each.

        Raises:
            ArgumentError: As `run` does.
        """
        return self._call(*self._located(inputs, outputs), _Scratch(self.package))

    def _call(
        self, arrays: Sequence[Array], addresses: Sequence[int], scratch: _Scratch
    ) -> Callable[[], None]:
        """Return a function without arguments that runs the model on checked arrays."""
        first = len(self.inputs)
        tables = tuple(
            (ctypes.c_void_p * max(len(part), 1))(*part)
            for part in (addresses[:first], addresses[first:])
        )
        arena, workspace = scratch.addresses
        run = partial(
            self._run,
            *map(ctypes.addressof, tables),
            *(arena, self._weights_address, workspace, self.num_threads, self._launch),
        )
        # The model reads addresses: the function holds references to the memory behind them.
        run.references = (arrays, tables, scratch, self)  # type: ignore[attr-defined]
        return run

    def _located(self, inputs: Arrays, outputs: Arrays) -> tuple[list[Array], list[int]]:
        """Return the checked arrays of all inputs and outputs in order, and their addresses."""
        given = _in_order("input", self.inputs, inputs)
        given += _in_order("output", self.outputs, outputs)
        checked = list(map(ArrayCheck.array, self._checks, given))
        addresses = list(map(address_of, checked))
        check_overlaps(self._checks, addresses, range(len(self.inputs), len(checked)))
        return checked, addresses

    def _fresh(self) -> list[Array]:
        return [
            aligned_empty(check.shape, check.dtype) for check in self._checks if check.is_output
        ]

    def _pool(self) -> int:
        content = self.package.files.get(POOL)
        if content is None or self.num_threads == 1:
            return 0
        return PROCESS_POOL.launch(lambda: bytes(content))


def refuse_pickling(package: Package) -> NoReturn:
    """Refuse to pickle or to copy a loaded model.

    Raises:
        TypeError: Always.
    """
    raise TypeError(
        f"the model {package.name} is code in the memory of this process, which can't be pickled or"
        " copied: save it, and load the package where you need it"
    )


def _aligned(content: memoryview) -> Array:
    """Return the weights, copied only if a tool that wrote the package did not align them."""
    weights = np.frombuffer(content, np.uint8)
    if address_of(weights) % ALIGNMENT == 0:
        return weights
    copy = aligned_empty(weights.shape, weights.dtype)
    copy[:] = weights
    return copy


def _threads(package: Package, num_threads: int | None) -> int:
    available = available_cores() if num_threads is None else operator.index(num_threads)
    if available < 1:
        raise ArgumentError(f"num_threads is {available}: expected 1 or more")
    return min(available, package.num_threads)


def _in_order(kind: str, expected: Sequence[Param], given: Arrays) -> list[Any]:
    """Return the arrays in the order of the model.

    Raises:
        ArgumentError: If one is missing, or is not of the model.
    """
    names = [array.name for array in expected]
    described = ", ".join(names) or "none"
    if isinstance(given, Mapping):
        for problem, wrong in (
            ("missing", [name for name in names if name not in given]),
            ("unknown", [name for name in given if name not in names]),
        ):
            if wrong:
                raise ArgumentError(
                    f"{problem} {kind} {', '.join(map(repr, wrong))}: the {kind}s are {described}"
                )
        return [given[name] for name in names]
    if not isinstance(given, list | tuple):
        raise ArgumentError(
            f"the {kind}s are {named_type(given)}: expected a dictionary or a list of arrays"
        )
    if len(given) != len(names):
        raise ArgumentError(f"{len(given)} {kind}s: expected {len(names)}, {described}")
    return list(given)


def _described(array: Param) -> str:
    return f"{array.name}: {array.dtype}{list(array.shape)}"

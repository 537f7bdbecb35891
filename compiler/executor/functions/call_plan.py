"""Kernels that call registered functions: a plan of steps, each native code or one call.

A step of native code is a kernel of its own; the arrays between steps lie in the workspace. A call
runs in Python, between the steps: its errors are exceptions, and no native code is on the stack.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..dtypes import numpy_dtype
from ..error import ArtifactError, LibraryCallError
from .registry import EXTERN, PACKED, LibraryFunction, registered_func

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
_C_TYPES: Mapping[str, Any] = {
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "bool": ctypes.c_bool,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


@dataclass(frozen=True, slots=True)
class ArrayArg:
    """An array that a call passes: a box of a buffer of the plan.

    Attributes:
        buffer: The number of the buffer.
        starts, shape: The box; leading extents of 1 that `shape` lacks are dropped.
        is_written: Whether the call may write it.
    """

    buffer: int
    starts: tuple[int, ...]
    shape: tuple[int, ...]
    is_written: bool


@dataclass(frozen=True, slots=True)
class ValueArg:
    """A number or a text that a call passes."""

    value: float | int | str
    dtype: str


Arg: TypeAlias = ArrayArg | ValueArg


@dataclass(frozen=True, slots=True)
class PlanBuffer:
    """An array of a plan: a parameter of the kernel, or one at an offset in its workspace."""

    shape: tuple[int, ...]
    dtype: str
    offset: int | None = None

    @property
    def size_bytes(self) -> int:
        """Return the size of the array."""
        return math.prod(self.shape) * numpy_dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True)
class KernelStep:
    """Native code: the number of the part, and the buffers that it takes."""

    part: int
    buffers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CallStep:
    """A call of a registered function, in the form `PACKED` or `EXTERN`.

    Attributes:
        num_threads: The most threads that a library should use; 0 for those of the kernel's call.
    """

    form: str
    function: str
    args: tuple[Arg, ...]
    num_threads: int = 0


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The steps of a kernel.

    Attributes:
        buffers: The parameters in order, then the arrays between steps.
        steps: What runs, in order.
        workspace_bytes: Where the workspace of native code begins, behind the arrays.
    """

    buffers: tuple[PlanBuffer, ...]
    steps: tuple[KernelStep | CallStep, ...]
    workspace_bytes: int

    @property
    def functions(self) -> tuple[str, ...]:
        """Return the names of the functions that it calls, each once."""
        calls = (step.function for step in self.steps if isinstance(step, CallStep))
        return tuple(dict.fromkeys(calls))

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], num_params: int, num_parts: int) -> CallPlan:
        """Return the plan of `to_json`.

        Raises:
            LookupError, TypeError, ValueError: If it is none, or refers to what does not exist.
        """
        buffers = tuple(
            PlanBuffer(_ints(b["shape"]), str(b["dtype"]), b["offset"]) for b in fields["buffers"]
        )
        steps = tuple(_step(step) for step in fields["steps"])
        plan = cls(buffers, steps, int(fields["workspace_bytes"]))
        plan._check(num_params, num_parts)
        return plan

    def _check(self, num_params: int, num_parts: int) -> None:
        """Refuse a plan that would leave its arrays."""
        for position, buffer in enumerate(self.buffers):
            is_inside = position < num_params
            if is_inside != (buffer.offset is None):
                raise ValueError("its plan has other parameters than its kernel")
            if not is_inside and not 0 <= int(buffer.offset or 0) <= (
                self.workspace_bytes - buffer.size_bytes
            ):
                raise ValueError("an array of its plan is outside of the workspace")
        for step in self.steps:
            if isinstance(step, KernelStep):
                self.buffers[max(step.buffers, default=0)]
                if not 0 <= step.part < num_parts or min(step.buffers, default=0) < 0:
                    raise ValueError("its plan refers to native code that it lacks")
                continue
            for arg in step.args:
                if isinstance(arg, ArrayArg):
                    self._check_box(arg)

    def _check_box(self, arg: ArrayArg) -> None:
        shape = self.buffers[arg.buffer].shape
        lead = len(shape) - len(arg.shape)
        box = (*(1,) * lead, *arg.shape)
        inside = (
            0 <= low <= low + extent <= size
            for low, extent, size in zip(arg.starts, box, shape, strict=True)
        )
        if arg.buffer < 0 or lead < 0 or not all(inside):
            raise ValueError("its plan passes more than an array")


def _ints(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(map(int, values))


def _step(fields: Mapping[str, Any]) -> KernelStep | CallStep:
    if "part" in fields:
        return KernelStep(int(fields["part"]), _ints(fields["buffers"]))
    if fields["form"] not in (PACKED, EXTERN):
        raise ValueError(f"its plan has a call of the form {fields['form']!r}")
    args = tuple(map(_arg, fields["args"]))
    return CallStep(fields["form"], str(fields["function"]), args, int(fields["num_threads"]))


def _arg(fields: Mapping[str, Any]) -> Arg:
    if "buffer" in fields:
        starts, shape = _ints(fields["starts"]), _ints(fields["shape"])
        return ArrayArg(int(fields["buffer"]), starts, shape, bool(fields["is_written"]))
    return ValueArg(fields["value"], str(fields["dtype"]))


class CallPlanRunner:
    """The entry of a kernel with a plan: it takes the words that native code would take.

    Args:
        name: The name of the kernel.
        plan: Its steps.
        num_params: The number of its parameters.
        entries: The native code of each part.

    Raises:
        UnknownFunctionError: If a function of the plan is not registered.
        ArtifactError: If a call does not fit the kind of its function.
    """

    def __init__(
        self,
        name: str,
        plan: CallPlan,
        num_params: int,
        entries: Sequence[Callable[[bytes | int], None]],
    ) -> None:
        self._name = name
        self._plan = plan
        self._num_params = num_params
        self._words = struct.Struct(f"{num_params + 3}Q")
        self._types = [ctypes.c_char * buffer.size_bytes for buffer in plan.buffers]
        self._dtypes = [numpy_dtype(buffer.dtype) for buffer in plan.buffers]
        self._entries = entries
        self._functions = {
            (step.form, step.function): checked_function(name, step.form, step.function)
            for step in plan.steps
            if isinstance(step, CallStep)
        }

    def __call__(self, words: bytes | int) -> None:
        """Run the steps.

        Args:
            words: The words, or their address.

        Raises:
            LibraryCallError: If a function raised an exception.
        """
        if isinstance(words, int):
            words = ctypes.string_at(words, self._words.size)
        *params, workspace, threads, launch = self._words.unpack(words)
        inner = [workspace + (b.offset or 0) for b in self._plan.buffers[self._num_params :]]
        addresses = [*params, *inner]
        native_workspace = workspace + self._plan.workspace_bytes
        for step in self._plan.steps:
            if isinstance(step, KernelStep):
                passed = [addresses[number] for number in step.buffers]
                packed = (*passed, native_workspace, threads, launch)
                self._entries[step.part](struct.pack(f"{len(packed)}Q", *packed))
                continue
            args = [
                self._array(arg, addresses) if isinstance(arg, ArrayArg) else arg.value
                for arg in step.args
            ]
            function = self._functions[step.form, step.function]
            most_threads = min(step.num_threads or threads, threads)
            run_function(function, step, args, self._name, most_threads)

    def _array(self, arg: ArrayArg, addresses: Sequence[int]) -> Array:
        number = arg.buffer
        memory: Any = self._types[number].from_address(addresses[number])
        shape = self._plan.buffers[number].shape
        whole: Array = np.ndarray(shape, self._dtypes[number], memory)
        if arg.shape == shape:
            return whole
        return box_of(whole, arg.starts, arg.shape)


def box_of(array: Array, starts: Sequence[int], shape: Sequence[int]) -> Array:
    """Return a box of an array as a view; leading extents of 1 that `shape` lacks are dropped."""
    lead = array.ndim - len(shape)
    key: Any = (
        *starts[:lead],
        *(slice(low, low + n) for low, n in zip(starts[lead:], shape, strict=True)),
        ...,  # a view even of a single element
    )
    box: Array = array[key]
    return box


def run_function(
    function: LibraryFunction,
    step: CallStep,
    args: Sequence[Any],
    caller: str,
    num_threads: int = 0,
) -> None:
    """Run a call on arrays, numbers and texts.

    Args:
        function: The function.
        step: The call.
        args: A value for each argument of the call.
        caller: The name of the program, for errors.
        num_threads: The most threads that a library should use; 0 for its own choice.

    Raises:
        LibraryCallError: If the function raised an exception.
    """
    try:
        if function.is_c:
            function.function(*map(_as_c, step.args, args))
        elif function.is_built_in:
            function.function(*args, num_threads=num_threads)
        else:
            function.function(*map(_protected, step.args, args))
    except Exception as error:
        raise LibraryCallError(
            f"{caller}: the registered function {function.name!r} raised "
            f"{type(error).__name__}: {error}",
            function.name,
        ) from error


def checked_function(caller: str, form: str, name: str) -> LibraryFunction:
    """Return the function of a call.

    Raises:
        UnknownFunctionError: If it is not registered.
        ArtifactError: If it is in C and the call is of the other kind, or the reverse.
    """
    function = registered_func(name)
    if function.is_c != (form == EXTERN):
        kind, other = ("a function in C", EXTERN) if function.is_c else ("not in C", PACKED)
        raise ArtifactError(
            f"{caller} calls {name!r} by T.{form}, but it is {kind}: expected T.{other}"
        )
    return function


def _protected(arg: Arg, value: Any) -> Any:
    """Return an array that can't be written if the call only reads it."""
    if isinstance(arg, ArrayArg) and not arg.is_written:
        value = value.view()
        value.flags.writeable = False
    return value


def _as_c(arg: Arg, value: Any) -> Any:
    if isinstance(arg, ArrayArg):
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, str):
        return ctypes.c_char_p(value.encode())
    return _C_TYPES[arg.dtype](value)

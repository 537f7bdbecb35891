"""The contract of libraries that are timed beside kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from numpy.typing import NDArray

from compiler.runtime.time_calls import Clock, time_calls
from compiler.user_errors import UsageError
from workers.libraries.kernel_sets import LibraryCode

Array: TypeAlias = NDArray[Any]


class LibraryError(UsageError):
    """A library is not installed here, or has no function for an operator."""


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A function of a library on given inputs.

    Attributes:
        run: Computes the result again, and returns it in the library's form.
        result: Converts the result of `run` to the workload's layout; is not timed.
        clock: Times calls of `run`.
        copies: What `run` reads instead of an input, in the form that the library requires.
    """

    run: Callable[[], Any]
    result: Callable[[Any], Any]
    clock: Clock = time_calls
    copies: Sequence[Any] = ()


class Library(Protocol):
    """A library of one process."""

    def start(self, num_threads: int) -> str:
        """Set its number of threads; return its name and version for display.

        Raises:
            LibraryError: If it is not installed.
        """
        ...

    def kernel_set(self) -> LibraryCode:
        """Return the code that it uses on this CPU, after its start."""
        ...

    def prepare(self, operator: str, inputs: Sequence[Any]) -> LibraryCall:
        """Find its function for an operator; inputs are converted here if it needs another form.

        Args:
            operator: As a line of text, see `compiler.ops.spec`.
            inputs: In the order of the operator's parameters: NumPy arrays, or the arrays of a GPU.

        Raises:
            LibraryError: If it has no function that computes exactly this.
        """
        ...

"""What a library must offer to be timed beside kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from numpy.typing import NDArray

from workers.libraries.kernel_sets import KernelSet

Array: TypeAlias = NDArray[Any]


class LibraryError(Exception):
    """A library is not installed here, or has no function for an operator."""


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A function of a library on given inputs.

    Attributes:
        run: Computes the result anew, and returns it as the library has it.
        result: Makes an array of the workload's layout of what `run` returned; is not timed.
    """

    run: Callable[[], Any]
    result: Callable[[Any], Array]


class Library(Protocol):
    """A library of one process."""

    def start(self, num_threads: int) -> str:
        """Have it use so many threads; return its name and version, as people say them.

        Raises:
            LibraryError: If it is not there.
        """
        ...

    def kernel_set(self) -> KernelSet:
        """Return which code it uses on this CPU, once it was started."""
        ...

    def prepare(self, operator: str, inputs: Sequence[Array]) -> LibraryCall:
        """Find its function for an operator; inputs that it wants otherwise are converted here.

        Args:
            operator: In the words of `compiler.ops.spec`.
            inputs: In the order of the operator's parameters.

        Raises:
            LibraryError: If it has none that does just that.
        """
        ...

"""The contract of the arrays that candidates run on and that check their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from compiler.ir.core.program import PrimFunc


class WrongResultError(Exception):
    """A kernel whose results differ from the oracle's."""


class TrialArrays(ABC):
    """One array for each parameter of a workload, on the device of a backend.

    They are made once for all candidates of a workload, which run on them one after another.
    """

    func: PrimFunc
    """Return the workload; if it is symbolic, the arrays have the sizes that it is timed at."""
    is_spot_checked: bool
    """Return whether `check` compares some rows, and sums of elements: results are large."""

    @abstractmethod
    def again(self) -> Self:
        """Return the same case with other arrays to run on."""

    @abstractmethod
    def fresh_arrays(self) -> list[Any]:
        """Return one array a parameter: inputs with their values, outputs poisoned."""

    @abstractmethod
    def check(self) -> float:
        """Compare the arrays with the oracle's after one run; return the largest error.

        Raises:
            WrongResultError: If they differ by more than rounding explains.
        """

    @abstractmethod
    def check_again(self) -> None:
        """Compare the outputs once more after many runs.

        Raises:
            WrongResultError: If a later run went wrong, as the race of a parallel loop may.
        """

    @abstractmethod
    def check_result(self, result: Any) -> None:
        """Compare the returned result of a library, for the only output, with the oracle's.

        Raises:
            WrongResultError: If it is another array, or the library wrote to an input.
        """

"""The data of a workload for measuring, made once for all its candidates.

That is the program, random inputs, and the result that the oracle expects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.backends.backend import backend_of
from compiler.backends.trial_arrays import TrialArrays
from compiler.ir.analysis.specialize import sized
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.error_growth import CheckCase, check_case
from compiler.ir.interpret.spot_check.spot_check import SpotCheck
from compiler.script.parser import parse
from compiler.target.target import Target
from workers.measure.shared_arrays import SharedArrays

Array = NDArray[Any]

_SEED = 0
_INPUT, _EXPECTED, _GROWTH, _SPOT = "input ", "expected ", "growth ", "spot "


class PreparedWorkloads:
    """The current workload, and the stored results of earlier ones.

    Args:
        slots: The memory files of a `SharedArrays`.
    """

    def __init__(self, slots: Sequence[int] = ()) -> None:
        self._shelf = SharedArrays(slots)
        self._key = ("", "")  # of the workload, and the label of the target
        self._current: TrialArrays | None = None

    def find(self, workload: str, target: Target) -> TrialArrays | None:
        """Return a workload, given as script text, if its result is known.

        Args:
            workload: The text.
            target: The target of its candidates.
        """
        key = _key(workload)
        if self._key != (key, target.label) or self._current is None:
            arrays = self._shelf.find(key)
            if arrays is None:
                return None
            self._take(key, target, parse(workload), arrays)
        return self._current

    def add(self, workload: str, target: Target) -> TrialArrays:
        """Return a workload, given as script text, whose result the oracle computes now.

        Args:
            workload: The text.
            target: The target of its candidates.

        Raises:
            ScriptError: If the text is no legal program.
            OracleError: If the oracle can't run it.
        """
        func = parse(workload)
        case = check_case(sized(func), _SEED)
        self._current = None  # it may be in the slot that is used next
        arrays = {
            **{_INPUT + name: array for name, array in case.inputs.items()},
            **{_EXPECTED + name: array for name, array in case.expected.items()},
            **{_GROWTH + name: np.asarray([grown]) for name, grown in case.growth.items()},
        }
        if case.spot is not None:
            arrays |= {_SPOT + name: array for name, array in case.spot.to_arrays().items()}
        key = _key(workload)
        return self._take(key, target, func, self._shelf.put(key, arrays))

    def _take(
        self, key: str, target: Target, func: PrimFunc, arrays: Mapping[str, Array]
    ) -> TrialArrays:
        inputs, expected, growth, spot = (
            {name.removeprefix(role): a for name, a in arrays.items() if name.startswith(role)}
            for role in (_INPUT, _EXPECTED, _GROWTH, _SPOT)
        )
        shares = {name: float(array[0]) for name, array in growth.items()}
        case = CheckCase(inputs, expected, shares, SpotCheck.from_arrays(spot) if spot else None)
        self._current = backend_of(target).arrays(func, target, case)
        self._key = (key, target.label)
        return self._current


def _key(workload: str) -> str:
    return hashlib.sha256(workload.encode()).hexdigest()

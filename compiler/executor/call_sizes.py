"""The sizes of a call: the values of symbolic extents, found in the arrays and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .error import ShapeError
from .extents import Extent, formula, value_of, variables_of
from .params import Param, Symbol

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CallSize:
    """The values of the symbolic extents of a call, in their order, and the workspace it needs."""

    values: tuple[int, ...]
    workspace_bytes: int


class CallSizes:
    """Finds and checks the sizes of calls of one kernel.

    Args:
        kernel: Its name.
        params: What it takes in each call.
        symbols: The symbolic extents.
        workspace_bytes: The size of its workspace.

    Raises:
        ValueError: If a formula of the kernel uses an unknown name, or an extent is not the whole
            of a dimension of some parameter.
    """

    def __init__(
        self,
        kernel: str,
        params: Sequence[Param],
        symbols: Sequence[Symbol],
        workspace_bytes: Extent,
    ) -> None:
        self._kernel = kernel
        self._params = params
        self._symbols = symbols
        self._workspace = workspace_bytes
        self._sources = _sources(self._params)
        names = {symbol.name for symbol in self._symbols}
        names |= {param.name for param in self._params if param.is_scalar}
        for extent in (workspace_bytes, *(extent for p in params for extent in p.extents)):
            if isinstance(extent, str):
                formula(extent)
                unknown = set(variables_of(extent)) - names
                if unknown:
                    raise ValueError(f"its formula {extent} uses {', '.join(sorted(unknown))}")
        for symbol in self._symbols:
            if symbol.name not in self._sources:
                raise ValueError(f"{symbol.name} is the whole of no dimension")

    def of(self, shapes: Sequence[Shape], numbers: Mapping[str, int]) -> CallSize:
        """Return the sizes of a call.

        Args:
            shapes: The shape of each argument; `()` for a number.
            numbers: The integers that are passed, by the names of their parameters.

        Raises:
            ShapeError: If an extent is out of its range, or does not agree with the others.
        """
        values = dict(numbers)
        for symbol in self._symbols:
            position, dim = self._sources[symbol.name]
            value = values[symbol.name] = shapes[position][dim]
            if not symbol.least <= value <= symbol.most:
                raise ShapeError(
                    f"{self._kernel} takes {symbol.name} from {symbol.least} to {symbol.most}:"
                    f" dimension {dim} of parameter {self._params[position].name} is {value}"
                )
        for param, shape in zip(self._params, shapes, strict=True):
            expected = tuple(value_of(extent, values) for extent in param.extents)
            if shape != expected:
                raise ShapeError(
                    f"parameter {param.name} is {param.dtype}{list(shape)}: expected"
                    f" {param.dtype}{list(expected)}, as {self._origins(param, values)}"
                )
        sizes = tuple(values[symbol.name] for symbol in self._symbols)
        return CallSize(sizes, value_of(self._workspace, values))

    def _origins(self, param: Param, values: Mapping[str, int]) -> str:
        """Return where the extents of a parameter come from, such as `M is 5 in A`."""
        names = sorted({name for extent in param.extents for name in variables_of(extent)})
        places = (
            f" in {self._params[self._sources[name][0]].name}" if name in self._sources else ""
            for name in names
        )
        origins = (f"{n} is {values[n]}{at}" for n, at in zip(names, places, strict=True))
        return " and ".join(origins)


def _sources(params: Sequence[Param]) -> dict[str, tuple[int, int]]:
    """Return the first dimension, by parameter and position, that a name is the whole of."""
    sources: dict[str, tuple[int, int]] = {}
    for position, param in enumerate(params):
        for dim, extent in enumerate(param.extents):
            if isinstance(extent, str):
                sources.setdefault(extent, (position, dim))
    return sources

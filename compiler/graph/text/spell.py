"""How values that stand in a graph are written: extents, types, attributes, constants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from compiler.graph.extents import Extent
from compiler.graph.nodes import Attr, Constant, TensorType
from compiler.ir.core.nodes import Expr, Var
from compiler.ir.text.names import Names
from compiler.ir.text.print_expr import show_expr

# A chosen bound: longer constants, such as weights, are named by their digest.
MAX_WRITTEN = 16
DIGEST = "sha256:"


class Symbols:
    """The printed names of symbolic extents."""

    def __init__(self, variables: Iterable[Var], taken: Iterable[str]) -> None:
        self._names = Names(frozenset(taken))
        self.names: Mapping[Var, str] = {var: self._names.bind(var) for var in variables}

    def extent(self, extent: Extent) -> str:
        """Print an extent."""
        return str(extent) if isinstance(extent, int) else show_expr(extent, self._names)

    def tensor_type(self, tensor_type: TensorType, *, is_parameter: bool = False) -> str:
        """Print a type; symbols are strings in a signature, which is read before they are bound."""
        extents = [self.extent(extent) for extent in tensor_type.shape]
        if is_parameter:
            extents = [
                text if isinstance(extent, int) else f'"{text}"'
                for text, extent in zip(extents, tensor_type.shape, strict=True)
            ]
        return f'R.Tensor({written_tuple(extents)}, "{tensor_type.dtype}")'

    def types(self, types: tuple[TensorType, ...], *, is_parameter: bool = False) -> str:
        """Print the types of one or of several results."""
        texts = [self.tensor_type(each, is_parameter=is_parameter) for each in types]
        return texts[0] if len(texts) == 1 else f"R.Tuple({', '.join(texts)})"

    def attr(self, value: Attr) -> str:
        """Print the value of an attribute."""
        match value:
            case bool() | None | str():
                return repr(value)
            case int():
                return str(value)
            case float():
                return written_float(value)
            case tuple():
                return written_tuple([self.attr(item) for item in value])
            case TensorType():
                return self.tensor_type(value)
            case _:
                assert isinstance(value, Expr), f"an attribute that has a text, not {value!r}"
                return self.extent(value)

    def constant(self, value: Constant) -> str:
        """Print a constant: its elements if they are few, otherwise its digest."""
        if value.array is None or value.type.num_elements > MAX_WRITTEN:
            return f'R.const("{DIGEST}{value.digest}", {self.tensor_type(value.type)})'
        return f'R.const({_elements(value.array.tolist())}, "{value.type.dtype}")'


def written_tuple(items: list[str]) -> str:
    """Print a tuple of printed items."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def written_float(value: float) -> str:
    """Print a float with all its digits; Python has no literal for NaN and infinity."""
    return repr(value) if math.isfinite(value) else f'T.float64("{value}")'


def _elements(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_elements, value))}]"
    return written_float(value) if isinstance(value, float) else repr(value)

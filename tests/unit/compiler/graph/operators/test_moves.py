import numpy as np
import pytest

from compiler.graph.error import ModelError
from compiler.graph.extents import multiply, subtract, symbol
from compiler.graph.nodes import Attr, TensorType
from compiler.graph.operator import find_operator
from tests.unit.compiler.graph.operators.checking import Case, check, numbers

X = numbers(2, 3, 4)


def _slice(begin: int, end: int, stride: int) -> dict[str, Attr]:
    return {"axes": (0,), "begin": (begin,), "end": (end,), "strides": (stride,)}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bool", "int64", "uint8"])
def test_views(dtype: str) -> None:
    x, scalar = numbers(2, 3, 4, dtype=dtype), numbers(dtype=dtype)
    check(
        Case("reshape", [x], {"shape": (6, 4)}),
        Case("reshape", [x], {"shape": (1, 2, 12, 1)}),
        Case("reshape", [x], {"shape": (4, 3, 2)}),
        Case("reshape", [numbers(dtype=dtype)], {"shape": (1, 1)}),
        Case("reshape", [numbers(1, 1, dtype=dtype)], {"shape": ()}),
        Case("reshape", [numbers(4, 6, 5, dtype=dtype)], {"shape": (8, 3, -1)}),
        Case("permute_dims", [x]),
        Case("permute_dims", [x], {"axes": (1, -3, 2)}),
        Case("permute_dims", [scalar]),
        Case("squeeze", [numbers(1, 3, 1, 2, dtype=dtype)]),
        Case("squeeze", [numbers(1, 3, 1, 2, dtype=dtype)], {"axis": (-2,)}),
        Case("expand_dims", [x], {"axis": (0, -1)}),
        Case("expand_dims", [scalar], {"axis": (0,)}),
        Case("broadcast_to", [numbers(3, 1, dtype=dtype)], {"shape": (2, 3, 4)}),
        Case("broadcast_to", [scalar], {"shape": (2, 2)}),
    )


def test_many_parts_are_joined() -> None:
    """A chain of conditions over them all would be nested too deeply."""
    check(Case("concat", [numbers(1 + k % 3, seed=k) for k in range(130)]))


@pytest.mark.parametrize("dtype", ["float32", "bool", "int8"])
def test_slices_and_joins(dtype: str) -> None:
    x, row = numbers(5, 4, dtype=dtype), numbers(7, dtype=dtype)
    check(
        *(
            Case(
                "strided_slice", [row], {"axes": (0,), "begin": (b,), "end": (e,), "strides": (s,)}
            )
            for b, e, s in [(1, 5, 2), (-1, -100, -1), (-3, 100, 1), (5, 0, -2), (100, -8, -3)]
        ),
        Case(
            "strided_slice",
            [x],
            {"axes": (1, 0), "begin": (1, -1), "end": (4, -6), "strides": (2, -2)},
        ),
        Case("concat", [x, numbers(2, 4, dtype=dtype), x]),
        Case("concat", [x, numbers(5, 1, dtype=dtype)], {"axis": -1}),
        Case("concat", [row]),
        Case("split", [x], {"indices_or_sections": 2, "axis": 1}),
        Case("split", [x], {"indices_or_sections": (1, 3)}),
        Case("flip", [x], {"axis": -1}),
        Case("roll", [x], {"shift": 3, "axis": 0}),
        Case("roll", [x], {"shift": -1, "axis": 1}),
        Case("repeat", [x], {"repeats": 3, "axis": 1}),
        Case("tile", [x], {"repeats": (2, 3)}),
        Case("tril", [x]),
        Case("tril", [numbers(2, 3, 3, dtype=dtype)], {"k": -1}),
        Case("triu", [x], {"k": 2}),
    )


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_padding(mode: str) -> None:
    width: Attr = ((0, 0), (2, 1), (3, 0))
    check(
        Case("nn.pad", [X], {"pad_width": width, "pad_mode": mode}),
        Case("nn.pad", [X.astype(np.int32)], {"pad_width": width, "pad_mode": mode}),
        Case("nn.pad", [X > 0], {"pad_width": width, "pad_mode": mode}),
        Case("nn.pad", [numbers(2)], {"pad_width": ((7, 6),), "pad_mode": mode}),
        Case("nn.pad", [numbers(1)], {"pad_width": ((2, 3),), "pad_mode": mode}),
        Case("nn.pad", [X], {"pad_width": ((0, 0),) * 3, "pad_mode": mode}),
    )


def test_padding_by_a_value() -> None:
    width: Attr = ((1, 0), (0, 2), (0, 0))
    check(
        Case("nn.pad", [X], {"pad_width": width, "pad_value": -np.inf}),
        Case("nn.pad", [X.astype(np.int64)], {"pad_width": width, "pad_value": 2**40}),
    )


def test_blocks_of_pixels() -> None:
    image = numbers(2, 8, 3, 2)
    check(
        Case("depth_to_space", [image], {"block_size": 2}),
        Case("depth_to_space", [image], {"block_size": 2, "mode": "CRD"}),
        Case("space_to_depth", [numbers(2, 3, 4, 6)], {"block_size": 2}),
        Case("space_to_depth", [numbers(2, 3, 4, 6)], {"block_size": 2, "mode": "CRD"}),
    )


def test_symbolic_extents() -> None:
    n = symbol("n")
    x = TensorType((n, 4), "float32")

    def shape(op: str, *operands: TensorType, **attrs: Attr) -> object:
        operator = find_operator(op)
        return operator.infer_types(operands, operator.complete(attrs))[0].shape

    assert shape("reshape", x, shape=(-1, 2)) == (multiply(n, 2), 2)
    assert shape("concat", x, x) == (multiply(n, 2), 4)
    assert shape("permute_dims", x) == (4, n)
    assert shape("broadcast_to", TensorType((4,), "float32"), shape=(n, 4)) == (n, 4)
    sliced = {"axes": (0,), "begin": (1,), "strides": (1,)}
    assert shape("strided_slice", x, end=(2**63 - 1,), **sliced) == (subtract(n, 1), 4)
    assert shape("strided_slice", x, end=(-1,), **sliced) == (subtract(n, 2), 4)
    with pytest.raises(ModelError, match=r"from 1 to 3 by 1 of the symbolic extent"):
        shape("strided_slice", x, end=(3,), **sliced)


def test_shapes_that_do_not_fit_are_refused() -> None:
    x = TensorType((2, 3), "float32")
    for op, attrs, message in [
        ("reshape", {"shape": (4,)}, "6 elements become 4"),
        ("squeeze", {"axis": (0,)}, "expected axes of extent 1"),
        ("permute_dims", {"axes": (0,)}, "expected all 2 axes"),
        ("flip", {"axis": 2}, "axis is 2: expected -2 to 1"),
        ("split", {"indices_or_sections": 2, "axis": 1}, "3 elements in 2 parts"),
        ("nn.pad", {"pad_width": ((1, 1),)}, "expected two numbers from 0 for each axis"),
        ("broadcast_to", {"shape": (3, 3)}, "can't be broadcast"),
    ]:
        operator = find_operator(op)
        with pytest.raises(ModelError, match=message):
            operator.infer_types([x], operator.complete(attrs))  # type: ignore[arg-type]

"""Declared intrinsics: calls that compute something else are refused, programs are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin, TensorIntrinError
from loopwright import te


@pytest.fixture(autouse=True)
def intrinsics() -> Iterator[None]:
    """Forget the intrinsics that a test registers."""
    known = dict(TensorIntrin._registered)
    yield
    TensorIntrin._registered.clear()
    TensorIntrin._registered.update(known)


def product(is_transposed: bool = True) -> te.Tensor:
    w, x = te.placeholder((8, 8), name="w"), te.placeholder((8, 8), name="x")
    k = te.reduce_axis((0, 8), "k")

    def element(i: te.Value, j: te.Value) -> te.Reduction:
        return te.sum(w[i, k] * (x[j, k] if is_transposed else x[k, j]), axis=k)

    return te.compute((8, 8), element, name="y")


def call(name: str, *order: int) -> Callable[[list[Any], list[Any]], Any]:
    def lower(inputs: list[Any], outputs: list[Any]) -> Any:
        pointers = [buffer.access_ptr("r") for buffer in (*inputs, *outputs)]
        return te.hardware_intrin(name, *(pointers[n] for n in order))

    return lower


REFUSED: dict[str, tuple[te.Tensor, Callable[..., Any], str]] = {
    "another product": (
        product(is_transposed=False),
        call("gemm8x8", 0, 1, 2),
        "gemm8x8 does not compute the compute of y: ",
    ),
    "too few arguments": (product(), call("gemm8x8", 0, 2), r"gemm8x8 takes w, x, y: got 2"),
    "arguments in another order": (
        product(),
        call("gemm8x8", 1, 0, 2),
        "gemm8x8 takes w as its w, not x",
    ),
    "an unknown intrinsic": (product(), call("gemm9x9", 0, 1, 2), 'no intrinsic "gemm9x9"'),
    "a number": (product(), lambda ins, outs: 3, "the compute is an int: expected a call"),
    "nothing": (product(), lambda ins, outs: (None, None, None), "expected .compute, reset"),
    "a buffer, not its storage": (
        product(),
        lambda ins, outs: te.hardware_intrin("gemm8x8", *ins, *outs),
        "is no storage: expected inputs",
    ),
    "an unknown access": (
        product(),
        lambda ins, outs: ins[0].access_ptr("x"),
        'expected "r", "w" or "rw"',
    ),
    "a reset of what is no reduction": (
        te.compute((8, 8), lambda i, j: te.const(1, "float32"), name="ones"),
        lambda ins, outs: (None, te.hardware_intrin("fill_zero", outs[0].access_ptr("w"))),
        "ones is no reduction: it has no reset",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_declaration_is_refused(name: str) -> None:
    y, lower, message = REFUSED[name]
    with pytest.raises(te.StageError, match=message):
        te.decl_tensor_intrin(y.op, lower)


ADD_ONE = """
@T.prim_func
def add_one_8(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
    y[0:8] = x[0:8] + T.Broadcast(T.float32(1), 8)
"""


def test_a_program_becomes_an_intrinsic_if_it_computes_the_same() -> None:
    def declared(amount: float) -> object:
        x = te.placeholder((8,), name="x")
        y = te.compute((8,), lambda i: x[i] + amount, name="y")
        return te.decl_tensor_intrin(y.op, lambda ins, outs: lw.parse(ADD_ONE))

    with pytest.raises(TensorIntrinError, match="add_one_8"):
        declared(2.0)
    intrin: Any = declared(1.0)
    assert declared(1.0) == intrin  # as when a cell of a notebook runs again

    A = te.placeholder((20, 24), name="A")
    B = te.compute((20, 24), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[1], factor=8)
    s[B].parallel(B.op.axis[0])
    s[B].tensorize(inner, intrin)
    a, b = np.random.default_rng(0).random((20, 24), "float32"), np.zeros((20, 24), "float32")
    lw.build(s, [A, B])(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_an_update_is_required_where_other_loops_go_on_with_the_sum() -> None:
    intrin = te.decl_tensor_intrin(product().op, call("gemm8x8", 0, 1, 2))
    A, B = te.placeholder((16, 16), name="A"), te.placeholder((16, 16), name="B")
    k = te.reduce_axis((0, 16), "k")
    C = te.compute((16, 16), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(C.op.axis[0], C.op.axis[1], 8, 8)
    ko, ki = s[C].split(k, factor=8)
    s[C].reorder(io, jo, ko, ii, ji, ki)
    s[C].tensorize(ii, intrin)
    with pytest.raises(te.StageError, match="the intrinsic has no update"):
        s.to_schedule([A, B, C])
    s[C].marks.clear()
    s[C].tensorize(ii, "fuse_gemm8x8_add")
    a = np.arange(256, dtype="float32").reshape(16, 16) % 7
    c = np.zeros((16, 16), "float32")
    lw.build(s, [A, B, C])(a, a, c)
    np.testing.assert_array_equal(c, a @ a.T)

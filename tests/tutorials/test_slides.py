"""The slides on tensor expressions, executed as they are printed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from tests.tutorials import slides
from tests.tutorials.running import assert_close, random_array, run

TARGET = "cpu -num-cores=2"


def execute(program: str, **names: Any) -> Any:
    """Run a program of the slides, and return its names."""
    scope = {"tvm": te, "t": te, **names}
    exec(program, scope)
    return scope


def test_dot_of_a_transposed_matrix_with_symbolic_shapes() -> None:
    scope = execute(slides.DOT)
    again = execute(slides.DOT_BY_ITS_SHORT_NAME, **scope)
    a, b = random_array(12, 33), random_array(20, 33, seed=1)
    for C in (scope["C"], again["C"]):
        func = te.create_prim_func([scope["A"], scope["B"], C])
        assert_close(run(func.specialize({"m": 12, "n": 20, "h": 33}), a, b), a @ b.T)


def test_an_affine_transformation() -> None:
    n, m, h = 12, 20, 33
    data = te.placeholder((n, h), name="data")
    w = te.placeholder((m, h), name="w")
    bias = te.placeholder((n,), name="bias")
    k = te.reduce_axis((0, h), name="k")
    out = execute(slides.AFFINE_TRANSFORMATION, **locals())["out"]
    x, weights, b = random_array(n, h), random_array(m, h, seed=1), random_array(n, seed=2)
    func = te.create_prim_func([data, w, bias, out])
    assert_close(run(func, x, weights, b), x @ weights.T + b[:, None])


def test_a_convolution() -> None:
    c, h, w_ = 3, 8, 10
    data = te.placeholder((2, h + 2, w_ + 2), name="data")
    w = te.placeholder((c, 3, 3), name="w")
    kc, kx, ky = (te.reduce_axis((0, n), name) for name, n in (("kc", 2), ("kx", 3), ("ky", 3)))
    out = execute(slides.CONVOLUTION, **locals())["out"]
    image, filters = random_array(2, h + 2, w_ + 2), random_array(c, 3, 3, seed=1)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(1, 2))
    expected = np.einsum("kxyab,iab->ixy", windows, filters)
    assert_close(run(te.create_prim_func([data, w, out]), image, filters), expected)


def test_a_rectifier_of_any_rank() -> None:
    shape = (3, 4, 5)
    x = te.placeholder(shape, name="x")
    out = execute(slides.RELU, shape=shape, out=x)["out"]
    values = random_array(*shape)
    np.testing.assert_array_equal(run(te.create_prim_func([x, out]), values), np.maximum(values, 0))


def vectors(n: int) -> dict[str, Any]:
    return {"n": n, "A": te.placeholder((n,), name="A"), "B": te.placeholder((n,), name="B")}


def loops(n: int, text: str) -> lw.PrimFunc:
    """Return the loops of a slide as a program."""
    params = ", ".join(f'{name}: T.Buffer[({n},), "float32"]' for name in "ABC")
    text = text.replace("ceil(n / 32)", str(-(-n // 32))).replace("range(n)", f"range({n})")
    guard = "            if xo * 32 + xi < n:\n"
    if n % 32 == 0 and guard in text.replace("        if", "            if"):
        text = text.replace("        if xo * 32 + xi < n:\n    ", "")
    body = text.replace("< n", f"< {n}").replace("\n", "\n    ")
    head = f"@T.prim_func\ndef main({params}):\n"
    return lw.parse(f'{head}    T.func_attr({{"tir.noalias": True}}){body}')


@pytest.mark.parametrize("n", [128, 100])
@pytest.mark.parametrize("slide", slides.LOOPS)
def test_a_schedule_has_the_loops_of_its_slide(slide: str, n: int) -> None:
    scope = execute(getattr(slides, slide), **vectors(n))
    s, args = scope["s"], [scope[name] for name in "ABC"]
    lowered = lw.lower(s, args, simple_mode=True)["main"]
    assert lw.structural_equal(lowered, loops(n, slides.LOOPS[slide])), lowered.script()
    kernel = lw.build(s, args, TARGET, name="add")
    a, b, c = random_array(n), random_array(n, seed=1), np.empty(n, "float32")
    kernel["add"](a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_a_misprint_has_a_hint() -> None:
    scope = execute(slides.SPLIT, **vectors(100))
    with pytest.raises(AttributeError, match="no attribute 'recorder'; did you mean 'reorder'"):
        execute(slides.RECORDER, **scope)


def test_the_loops_of_a_symbolic_shape_have_a_guard() -> None:
    n = te.var("n")
    names = {"n": n, "A": te.placeholder((n,), name="A"), "B": te.placeholder((n,), name="B")}
    scope = execute(slides.REORDER, **names)
    sch = scope["s"].to_schedule([scope[name] for name in "ABC"])
    assert "(n + 31) // 32" in sch.func.script()
    a, b = random_array(100), random_array(100, seed=1)
    np.testing.assert_array_equal(run(sch.func.specialize({"n": 100}), a, b), a + b)


def test_a_recurrence() -> None:
    m, n = 10, 7
    X = te.placeholder((m, n), name="X")
    s_state = te.placeholder((m, n), name="state")
    s_init = te.compute((1, n), lambda _, i: X[0, i])
    Y = execute(slides.RECURRENCE, **locals())["Y"]
    s = te.create_schedule(Y.op)
    _, inner = s[s_init].split(s_init.op.axis[1], factor=4)
    s[s_init].vectorize(inner)
    x, y = random_array(m, n), np.empty((m, n), "float32")
    lw.build(s, [X, Y], TARGET)(x, y)
    assert_close(y, np.cumsum(x, axis=0))


def intrinsic() -> Any:
    names = {"t_placeholder": te.placeholder, "t_reduce_axis": te.reduce_axis}
    return execute(slides.INTRINSIC, **names)["gemm8x8"]


def product(m: int, n: int, depth: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    w, x = te.placeholder((m, depth), name="w"), te.placeholder((n, depth), name="x")
    k = te.reduce_axis((0, depth), "k")
    y = te.compute((m, n), lambda i, j: te.sum(w[i, k] * x[j, k], axis=k), name="y")
    return w, x, y


def test_a_product_of_that_size_is_one_instruction() -> None:
    w, x, y = product(8, 8, 8)
    s = te.create_schedule(y.op)
    s[y].tensorize(y.op.axis[0], intrinsic())
    a, b = random_array(8, 8), random_array(8, 8, seed=1)
    assert_close(run(s.to_schedule([w, x, y]), a, b), a @ b.T)


def test_a_larger_product_is_reset_once_and_updated_tile_by_tile() -> None:
    w, x, y = product(32, 24, 40)
    s = te.create_schedule(y.op)
    io, jo, ii, ji = s[y].tile(y.op.axis[0], y.op.axis[1], 8, 8)
    ko, ki = s[y].split(y.op.reduce_axis[0], factor=8)
    s[y].reorder(io, jo, ko, ii, ji, ki)
    s[y].tensorize(ii, intrinsic())
    sch = s.to_schedule([w, x, y])
    assert [sch.get_sblock(name).of for name in ("y_init_o", "y_update_o")]
    a, b = random_array(32, 40), random_array(24, 40, seed=1)
    assert_close(run(sch, a, b), a @ b.T)
    assert lw.structural_equal(lw.parse(sch.func.script()), sch.func)


def test_another_computation_is_not_taken_for_the_product() -> None:
    a, b = te.placeholder((8, 8), name="a"), te.placeholder((8, 8), name="b")
    k = te.reduce_axis((0, 8), "k")
    c = te.compute((8, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    s = te.create_schedule(c.op)
    s[c].tensorize(c.op.axis[0], intrinsic())
    with pytest.raises(lw.ScheduleError, match="not what the intrinsic computes"):
        s.to_schedule([a, b, c])

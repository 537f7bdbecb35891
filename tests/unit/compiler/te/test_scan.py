"""Recurrences, and tensors that a piece of program computes."""

from typing import Any

import numpy as np
import pytest

import loopwright as lw
from compiler import te
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.schedule.error import ScheduleError
from compiler.script import parse

M, N = 10, 7

CUMSUM = """
@T.prim_func(s_tir=True)
def main(X: T.Buffer((10, 7), "float32"), scan: T.Buffer((10, 7), "float32")):
    for i0, i in T.grid(1, 7):
        with T.sblock("s_init"):
            v_i0, v_i = T.axis.remap("SS", [i0, i])
            T.reads(X[0, v_i])
            T.writes(scan[v_i0, v_i])
            scan[v_i0, v_i] = X[0, v_i]
    for t in range(9):
        for i in range(7):
            with T.sblock("s_update"):
                v_t = T.axis.scan(9, t)
                v_i = T.axis.spatial(7, i)
                T.reads(scan[v_t, v_i], X[v_t + 1, v_i])
                T.writes(scan[v_t + 1, v_i])
                scan[v_t + 1, v_i] = scan[v_t, v_i] + X[v_t + 1, v_i]
"""


def cumsum() -> PrimFunc:
    X = te.placeholder((M, N), name="X")
    s_state = te.placeholder((M, N), name="state")
    s_init = te.compute((1, N), lambda _, i: X[0, i], name="s_init")
    s_update = te.compute((M, N), lambda t, i: s_state[t - 1, i] + X[t, i], name="s_update")
    return te.create_prim_func([X, te.scan(s_init, s_update, s_state, inputs=[X])])


def run(func: PrimFunc) -> tuple[Any, Any]:
    """Return inputs and outputs, the scalar evaluator and a kernel agreeing on them."""
    inputs = random_inputs(func, 0)
    outputs = interpret(func, inputs)
    assert compare(func, evaluate(func, inputs), outputs) < 1e-5
    arrays = [inputs.get(b.name, np.zeros_like(outputs.get(b.name))) for b in func.buffers]
    lw.build(func)(*arrays)
    assert (
        compare(func, dict(zip((b.name for b in func.buffers), arrays, strict=True)), outputs)
        < 1e-5
    )
    return inputs, outputs


def test_a_scan_computes_its_state_in_place() -> None:
    func = cumsum()
    assert structural_equal(func, parse(CUMSUM))
    inputs, outputs = run(func)
    np.testing.assert_allclose(outputs["scan"], np.cumsum(inputs["X"], axis=0), rtol=1e-5)


def test_the_steps_of_a_scan_keep_their_order_under_a_schedule() -> None:
    sch = lw.Schedule(cumsum())
    block = sch.get_sblock("s_update")
    t, i = sch.get_loops(block)
    with pytest.raises(ScheduleError):
        sch.parallel(t)
    with pytest.raises(ScheduleError):
        sch.vectorize(t)
    with pytest.raises(ScheduleError):
        sch.rfactor(t, 0)
    outer, _ = sch.split(i, [2, None])
    with pytest.raises(ScheduleError):
        sch.reorder(outer, t)
    inputs = random_inputs(sch.func, 0)
    np.testing.assert_allclose(
        evaluate(sch.func, inputs)["scan"], np.cumsum(inputs["X"], axis=0), rtol=1e-5
    )


def test_several_states_with_values_between_them_and_a_sum_in_each_step() -> None:
    W, X = te.placeholder((N, N), name="W"), te.placeholder((M, N), name="X")
    h, c = te.placeholder((M, N), name="h"), te.placeholder((M, N), name="c")
    k = te.reduce_axis((0, N), name="k")
    mixed = te.compute((M, N), lambda t, i: te.sum(W[i, k] * h[t - 1, k], axis=k), name="mixed")
    gate = te.compute((M, N), lambda t, i: te.tanh(mixed[t, i] + X[t, i]), name="gate")
    h_init = te.compute((1, N), lambda _, i: X[0, i] * 0.5, name="h_init")
    c_init = te.compute((1, N), lambda _, i: 0.0, name="c_init")
    h_next = te.compute((M, N), lambda t, i: gate[t, i] * 0.5, name="h_next")
    c_next = te.compute((M, N), lambda t, i: c[t - 1, i] + gate[t, i] * h[t - 1, i], name="c_next")
    H, C = te.scan([h_init, c_init], [h_next, c_next], [h, c], inputs=[W, X], name="rnn")
    total = te.compute((M, N), lambda t, i: H[t, i] + C[t, i], name="total")
    func = te.create_prim_func([W, X, H, total])
    inputs, outputs = run(func)
    w, x = inputs["W"].astype(float), inputs["X"].astype(float)
    hs, cs = [x[0] * 0.5], [np.zeros(N)]
    for t in range(1, M):
        g = np.tanh(w @ hs[-1] + x[t])
        cs.append(cs[-1] + g * hs[-1])
        hs.append(g * 0.5)
    np.testing.assert_allclose(outputs["rnn_v0"], hs, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(outputs["total"], np.array(hs) + cs, rtol=1e-4, atol=1e-5)


def test_a_scan_may_look_back_as_far_as_it_has_first_steps() -> None:
    X, state = te.placeholder((2, N), name="X"), te.placeholder((M, N), name="state")
    update = te.compute((M, N), lambda t, i: state[t - 1, i] + state[t - 2, i], name="next")
    Y = te.scan(X, update, state, name="fibonacci")
    inputs, outputs = run(te.create_prim_func([X, Y]))
    expected = list(inputs["X"].astype(float))
    while len(expected) < M:
        expected.append(expected[-1] + expected[-2])
    np.testing.assert_allclose(outputs["fibonacci"], expected, rtol=1e-5)


def test_a_scan_of_symbolic_length() -> None:
    m = te.var("m")
    X, state = te.placeholder((m, N), name="X"), te.placeholder((m, N), name="state")
    init = te.compute((1, N), lambda _, i: X[0, i], name="init")
    update = te.compute((m, N), lambda t, i: te.max(state[t - 1, i], X[t, i]), name="next")
    func = te.create_prim_func([X, te.scan(init, update, state)]).specialize({m: M})
    inputs, outputs = run(func)
    np.testing.assert_array_equal(outputs["scan"], np.maximum.accumulate(inputs["X"], axis=0))


def scan_of(update: Any, init: Any = None, dtype: Any = "float32") -> Any:
    state = te.placeholder((M, N), "float32", name="state")
    first = init or te.compute((1, N), lambda _, i: te.const(0, dtype), name="init")
    return te.scan(first, te.compute((M, N), lambda t, i: update(state, t, i), name="next"), state)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: scan_of(lambda s, t, i: s[t, i] + 1), "at a step that scan has not computed"),
        (lambda: scan_of(lambda s, t, i: s[t - 2, i] + 1), "expected one of the 1 before"),
        (lambda: scan_of(lambda s, t, i: s[i, i] + 1), "at a step that scan has not computed"),
        (lambda: scan_of(lambda s, t, i: s[t - 1, i], dtype="int32"), "its init int32"),
        (
            lambda: scan_of(lambda s, t, i: s[t - 1, i], te.placeholder((1, 3))),
            "init placeholder has shape (1, 3), state state (10, 7)",
        ),
        (
            lambda: scan_of(lambda s, t, i: s[t - 1, i], te.placeholder((M, N))),
            "scan has no step after its init",
        ),
        (lambda: te.scan([], [], []), "expected as many of each"),
    ],
)
def test_scans_that_make_no_sense_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is looked at below
        make()
    assert message in str(caught.value)


COPY = """
@T.prim_func
def double(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T_ = T.alloc_buffer((4, 8), "float32")
    for i, j in T.grid(4, 8):
        with T.block("T"):
            vi, vj = T.axis.remap("SS", [i, j])
            T_[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T_[vi, vj] + 1.0
"""


def test_a_function_computes_a_tensor() -> None:
    A = te.placeholder((4, 8), name="A")
    D = te.extern_primfunc([A], parse(COPY))
    E = te.compute((4, 8), lambda i, j: D[i, j] * D[i, j], name="E")
    func = te.create_prim_func([A, E])
    inputs, outputs = run(func)
    np.testing.assert_allclose(outputs["E"], (inputs["A"] * 2 + 1) ** 2, rtol=1e-5)


def test_statements_compute_tensors() -> None:
    A = te.placeholder((4, 8), name="A")
    E = te.extern((4, 8), [A], lambda ins, outs: parse(COPY), name="E")
    inputs, outputs = run(te.create_prim_func([A, E]))
    np.testing.assert_allclose(outputs["E"], inputs["A"] * 2 + 1, rtol=1e-5)


def test_a_program_that_does_not_fit_is_refused() -> None:
    A = te.placeholder((8, 4), name="A")
    with pytest.raises(ValueError, match="parameters of double are not the inputs and outputs"):
        te.extern_primfunc([A], parse(COPY))
    with pytest.raises(TypeError, match="returns a str: expected statements or a PrimFunc"):
        te.extern((4, 8), [A], lambda ins, outs: "no program")  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="expected buffers for outputs after them"):
        te.extern_primfunc([A, A], parse(COPY))


def test_a_state_may_read_what_another_has_become_in_the_same_step() -> None:
    X, c, h = (te.placeholder((M, N), name=name) for name in ("X", "c", "h"))
    zero = [te.compute((1, N), lambda _, i: 0.0, name=name) for name in ("c_init", "h_init")]
    c_next = te.compute((M, N), lambda t, i: c[t - 1, i] * 0.5 + X[t, i] + h[t - 1, i], name="cn")
    h_next = te.compute((M, N), lambda t, i: te.tanh(c_next[t, i]) * 0.5, name="hn")
    C, H = te.scan(zero, [c_next, h_next], [c, h], inputs=[X], name="lstm")
    inputs, outputs = run(te.create_prim_func([X, C, H]))
    cs, hs = [np.zeros(N)], [np.zeros(N)]
    for t in range(1, M):
        cs.append(cs[-1] * 0.5 + inputs["X"][t] + hs[-1])
        hs.append(np.tanh(cs[-1]) * 0.5)
    np.testing.assert_allclose(outputs["lstm_v0"], cs, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(outputs["lstm_v1"], hs, rtol=1e-4, atol=1e-5)

"""Loops of every kind, guards, buffers, threads: what runs is what the program says."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from compiler import ops, te
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.backends.error import BuildError
from compiler.driver import build, emit, lower
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    BinOp,
    Block,
    BlockRealize,
    BufferRegion,
    Compare,
    FloatImm,
    For,
    IntImm,
    IterVar,
    Load,
    LoopKind,
    Range,
    Seq,
    Store,
    Var,
    make_buffer,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute, walk
from compiler.target.cpu import CpuTarget
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import ONE_CORE, elementwise, mark, run

RNG = np.random.default_rng(3)


def tiled_copy(extent: int, tile: int, inner: LoopKind) -> PrimFunc:
    """Return `B[v] = A[v] + 1` for v = i*tile + j, guarded where the tile does not divide."""
    A, B = make_buffer("A", (extent,)), make_buffer("B", (extent,))
    i, j, v = Var("i"), Var("j"), Var("v")
    value = BinOp("+", BinOp("*", i, IntImm(tile)), j)
    block = Block(
        "B",
        (IterVar(v, IntImm(extent), "spatial"),),
        (BufferRegion(A, (Range(v, IntImm(1)),)),),
        (BufferRegion(B, (Range(v, IntImm(1)),)),),
        Store(B, (v,), BinOp("+", Load(A, (v,)), FloatImm(1.0))),
    )
    guarded = BlockRealize((value,), Compare("<", value, IntImm(extent)), block)
    body = For(i, IntImm(-(-extent // tile)), For(j, IntImm(tile), guarded, inner))
    root = Block("root", (), (), (), body)
    return PrimFunc("tiled_copy", (A, B), BlockRealize((), TRUE, root))


@pytest.mark.parametrize("inner", ["serial", "vectorized", "unrolled"])
@pytest.mark.parametrize(("extent", "tile"), [(33, 8), (7, 16), (64, 16), (35, 3)])
def test_a_guard_keeps_every_lane_inside(extent: int, tile: int, inner: LoopKind) -> None:
    x = RNG.standard_normal(extent).astype("float32")
    # The output sits between fences: a lane beyond the end would change them.
    room = np.full(extent + 64, 9.0, dtype="float32")
    func = tiled_copy(extent, tile, inner)
    build(func, ONE_CORE)(x, room[32 : 32 + extent])
    np.testing.assert_array_equal(room[32 : 32 + extent], x + 1)
    assert (room[:32] == 9).all()
    assert (room[32 + extent :] == 9).all()


@pytest.mark.parametrize("extent", [1, 5, 16, 31, 257, 1000])
def test_a_vectorized_loop_of_any_length(extent: int) -> None:
    x = RNG.standard_normal(extent).astype("float32")
    func = mark(elementwise(extent, lambda A, i: A[i] * 2.0), i="vectorized")
    np.testing.assert_array_equal(run(func, x), 2 * x)


def test_a_vectorized_loop_may_hold_a_serial_one() -> None:
    a, b = RNG.random((5, 9), "float32"), RNG.random((9, 21), "float32")
    got = run(mark(ops.matmul(5, 21, 9), j="vectorized"), a, b)
    np.testing.assert_allclose(got, a @ b, rtol=1e-5)


def test_a_vectorized_reduction_is_refused() -> None:
    """Every lane would store to one element."""
    with pytest.raises(BuildError, match="v_k of block C is not spatial"):
        build(mark(ops.matmul(4, 4, 16), k="vectorized"), ONE_CORE)


def fuse_rows(func: PrimFunc, kind: LoopKind) -> PrimFunc:
    """Put two nests over rows into one loop, as compute_at does."""
    body = func.root.body
    assert isinstance(body, Seq)
    first, second = body.stmts
    assert isinstance(first, For)
    assert isinstance(second, For)
    both = seq(substitute(first.body, {first.var: second.var}), second.body)
    root = replace(func.root, body=For(second.var, second.extent, both, kind))
    return replace(func, body=replace(func.body, block=root))


def test_an_intermediate_shrinks_to_what_one_iteration_touches() -> None:
    A = te.placeholder((64, 100), "float32", name="A")
    T = te.compute((64, 100), lambda i, j: A[i, j] + 1.0, name="T")
    B = te.compute((64, 100), lambda i, j: T[i, j] * 2.0, name="B")
    func = fuse_rows(te.create_prim_func([A, B]), "serial")
    (allocation,) = [n for n in walk(lower(func, level(3))) if isinstance(n, Allocate)]
    assert allocation.buffer.shape == (IntImm(1), IntImm(100))
    x = RNG.random((64, 100), "float32")
    np.testing.assert_array_equal(run(func, x), (x + 1) * 2)


def test_a_buffer_outlives_the_loop_that_reduces_into_it() -> None:
    """Sunk into the reduction's loop, the accumulator would lose its value."""
    a, b = RNG.random((6, 6), "float32"), RNG.random((6, 6), "float32")
    np.testing.assert_allclose(run(ops.mm_relu(6, 6, 6), a, b), np.maximum(a @ b, 0), rtol=1e-5)


def accumulations(text: str) -> int:
    """Count the stores inside the loops of an LLVM function."""
    return len(re.findall(r"^  store <", text, re.MULTILINE))


def test_an_accumulator_stays_in_registers_across_the_reduction() -> None:
    """The tile is loaded before the loop over k and stored after it, not once a step."""
    func = split_init(ops.matmul(4, 16, 64))
    text = emit(mark(func, i="unrolled", j="vectorized"), level(3)).text
    assembly = disassemble(text, level(3))
    loops = re.findall(r"(\.LBB\d+_\d+):(.*?)\bj[a-z]+\s+\1\b", assembly, re.DOTALL)
    assert loops, "the reduction is a loop"
    assert not any(re.search(r"vmov[au]ps\s+%[xyz]mm\d+, .*\(", body) for _, body in loops)
    a, b = RNG.random((4, 64), "float32"), RNG.random((64, 16), "float32")
    got = run(mark(func, i="unrolled", j="vectorized"), a, b)
    np.testing.assert_allclose(got, a @ b, rtol=1e-5)


def split_init(func: PrimFunc) -> PrimFunc:
    """Zero the output first, then run `k, i, j`: what decompose_reduction and reorder give."""
    i, j, k = (n for n in walk(func.root.body) if isinstance(n, For))
    realize = k.body
    assert isinstance(realize, BlockRealize)
    assert realize.block.init is not None
    reads = (*realize.block.reads, *realize.block.writes)
    update = replace(realize, block=replace(realize.block, init=None, reads=reads))
    a, b = Var("i"), Var("j")
    zero = BlockRealize(
        realize.iter_values[:2],
        TRUE,
        replace(
            realize.block,
            name="init",
            iter_vars=realize.block.iter_vars[:2],
            reads=(),
            body=realize.block.init,
            init=None,
        ),
    )
    zeroed = For(a, i.extent, For(b, j.extent, substitute(zero, {i.var: a, j.var: b})))
    nest = For(k.var, k.extent, For(i.var, i.extent, For(j.var, j.extent, update)))
    root = replace(func.root, body=seq(zeroed, nest))
    return replace(func, body=replace(func.body, block=root))


def test_too_much_unrolling_is_refused_and_says_so() -> None:
    func = mark(ops.matmul(32, 32, 32), i="unrolled", j="unrolled", k="unrolled")
    with pytest.raises(BuildError, match="expands to more than 8192 stores: unroll less"):
        emit(func, level(3))


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3", "sapphirerapids", "neoverse-n1"])
def test_code_for_other_cpus_uses_their_registers(cpu: str) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    func = mark(split_init(ops.matmul(4, 16, 64)), i="unrolled", j="vectorized")
    assembly = disassemble(emit(func, target).text, target)
    expected = {"x86-64": "mulps", "x86-64-v3": r"vfmadd\d+ps.*ymm", "neoverse-n1": r"fmla\s+v"}
    assert re.search(expected.get(cpu, r"vfmadd\d+ps.*zmm"), assembly)


@pytest.mark.parametrize("spec", ["softmax:8,33", "layer_norm:8,33", "row_sum:5,9"])
def test_operators_of_several_stages_run(spec: str) -> None:
    func = ops.from_spec(spec)
    inputs: list[Any] = [
        RNG.random(tuple(int(n.value) for n in b.shape if isinstance(n, IntImm)), "float32")
        for b in func.buffers[:-1]
    ]
    got = run(func, *inputs)
    assert np.isfinite(got).all()
    if spec.startswith("softmax"):
        x = np.exp(inputs[0] - inputs[0].max(1, keepdims=True))
        np.testing.assert_allclose(got, x / x.sum(1, keepdims=True), rtol=1e-5)


def test_a_store_is_seen_through_another_object_of_the_same_buffer() -> None:
    A, B = make_buffer("A", (1,)), make_buffer("B", (2,))
    same = replace(A)
    first, second = (IntImm(0),), (IntImm(1),)
    body = seq(
        Store(B, first, Load(A, first)),
        Store(same, first, FloatImm(2.0)),
        Store(B, second, Load(A, first)),
    )
    root = Block("root", (), (), (), body)
    func = PrimFunc("main", (A, B), BlockRealize((), TRUE, root))
    np.testing.assert_array_equal(run(func, np.ones(1, np.float32)), [1.0, 2.0])


def test_indices_that_two_loops_of_one_variable_share_follow_each_extent() -> None:
    B = make_buffer("B", (3, 12))
    i = Var("i")
    store = Store(B, (BinOp("//", i, IntImm(4)), i), FloatImm(1.0))
    body = seq(For(i, IntImm(4), store), For(i, IntImm(12), store))
    root = Block("root", (), (), (), body)
    got = run(PrimFunc("main", (B,), BlockRealize((), TRUE, root)))
    np.testing.assert_array_equal(np.argwhere(got == 1), [[n // 4, n] for n in range(12)])


def test_an_index_from_memory_is_read_again_once_it_was_written() -> None:
    at, out = make_buffer("at", (1,), "int32"), make_buffer("out", (8,))
    i, zero = Var("i"), IntImm(0)
    here = Load(at, (zero,))
    step = seq(
        Store(out, (BinOp("%", here, IntImm(8)),), FloatImm(1.0)),
        Store(at, (zero,), BinOp("+", here, IntImm(3))),
    )
    root = Block("root", (), (), (), For(i, IntImm(3), step, "unrolled"))
    module = build(PrimFunc("hops", (at, out), BlockRealize((), TRUE, root)), ONE_CORE)
    start, marks = np.array([1], np.int32), np.zeros(8, np.float32)
    module(start, marks)
    assert np.flatnonzero(marks).tolist() == [1, 4, 7]

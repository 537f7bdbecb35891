"""Parameters that never change: what is copied of them is copied once, when a kernel is built."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compiler import ops
from compiler.backends.cpu.lower import lower_split
from compiler.backends.error import BuildError
from compiler.backends.module import Module
from compiler.driver import build, compile_kernel, emit
from compiler.executor.artifact import Artifact
from compiler.executor.error import ArgumentError
from compiler.ir.analysis.constant_params import with_constants
from compiler.ir.core.nodes import Allocate, Store, static_shape
from compiler.ir.core.visit import walk
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from compiler.target.cpu import CpuTarget

ONE_CORE = CpuTarget("cpu -num-cores=1")
RNG = np.random.default_rng(5)
A = RNG.standard_normal((20, 24)).astype("float32")
B = RNG.standard_normal((24, 32)).astype("float32")


def packed(*, cut: bool = True) -> Schedule:
    """Return a product whose right operand is packed inside of the loop over blocks of the sum."""
    sch = Schedule(ops.matmul(20, 32, 24))
    i, j, k = sch.get_loops("C")
    j0, j1 = sch.split(j, [None, 8])
    k0, k1 = sch.split(k, [3 if cut else 1, None])
    sch.reorder(k0, j0, i, k1, j1)
    copy = sch.cache_read("C", 1, "global")
    sch.compute_at(copy, k0)
    sch.annotate(copy, "buffer_tile", [0, 1, 8])
    sch.vectorize(j1)
    return sch


def test_a_packed_copy_of_any_layout_is_read_only_for_the_kernel() -> None:
    sch = Schedule(with_constants(ops.matmul(20, 32, 24), ["B"]))
    sch.cache_read("C", 1, "global")
    artifact = Artifact.from_bytes(compile_kernel(sch, ONE_CORE).to_bytes())
    assert [param.name for param in artifact.params if param.is_output] == ["C"]


@pytest.mark.parametrize("cut", [True, False])
def test_a_packed_constant_is_packed_when_the_kernel_is_built(cut: bool) -> None:
    sch = packed(cut=cut)
    constant = B.copy()
    module = build(sch, ONE_CORE, const_params={"B": constant})
    constant.fill(np.nan)
    assert [param.name for param in module.params] == ["A", "C"]
    out = np.full((20, 32), np.nan, "float32")
    module(A, out)
    np.testing.assert_allclose(out, A @ B, rtol=1e-5, atol=1e-5)
    again = np.full((20, 32), np.nan, "float32")
    module.bind(A, again)()
    np.testing.assert_array_equal(again, out)


def test_the_kernel_does_not_copy_any_more() -> None:
    func = packed().func
    (right,) = (b for b in func.buffers if b.name == "B")
    copies, made, left = lower_split(func, {right}, ONE_CORE)
    assert [copy.name for copy in copies] == ["B_global"]
    assert {n.buffer for n in walk(made) if isinstance(n, Store)} == set(copies)
    assert not set(copies) & {n.buffer for n in walk(left) if isinstance(n, Store)}


def test_a_constant_that_is_read_where_it_is_needs_no_copy() -> None:
    constant = B.copy()
    module = build(ops.matmul(20, 32, 24), ONE_CORE, const_params={"B": constant})
    constant.fill(0)
    out = np.empty((20, 32), "float32")
    module(A, out)
    np.testing.assert_allclose(out, A @ B, rtol=1e-5, atol=1e-5)


def test_what_depends_on_other_parameters_stays_in_the_kernel() -> None:
    """Both operands are packed, and only one is constant."""
    sch = packed()
    sch.cache_read("C", 0, "global")
    module = build(sch, ONE_CORE, const_params={"B": B})
    for scale in (1, 2):
        out = np.empty((20, 32), "float32")
        module(A * np.float32(scale), out)
        np.testing.assert_allclose(out, scale * (A @ B), rtol=1e-5, atol=1e-5)


def test_a_copy_that_is_overwritten_step_by_step_is_no_constant() -> None:
    """The buffer holds one row at a time: where an element lies does not tell what it is."""
    func = parse(
        """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((20, 24), "float32"), B: T.Buffer((24, 32), "float32"),
         C: T.Buffer((20, 32), "float32")):
    row = T.sblock_alloc_buffer((32,), "float32")
    for k in range(24):
        for j in range(32):
            with T.sblock("row"):
                vk, vj = T.axis.remap("SS", [k, j])
                T.reads(B[vk, vj])
                T.writes(row[vj])
                row[vj] = B[vk, vj]
        for i, j in T.grid(20, 32):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A[vi, vk], row[vj])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * row[vj]
"""
    )
    (right,) = (b for b in func.buffers if b.name == "B")
    assert lower_split(func, {right}, ONE_CORE)[0] == ()
    out = np.empty((20, 32), "float32")
    build(func, ONE_CORE, const_params={"B": B})(A, out)
    np.testing.assert_allclose(out, A @ B, rtol=1e-5, atol=1e-5)


def test_what_is_no_parameter_or_written_is_refused() -> None:
    with pytest.raises(BuildError, match="W: not a parameter"):
        build(ops.matmul(20, 32, 24), ONE_CORE, const_params={"W": B})
    with pytest.raises(BuildError, match="C: the program writes it"):
        build(ops.matmul(20, 32, 24), ONE_CORE, const_params={"C": B})


def test_a_constant_of_another_shape_is_refused() -> None:
    with pytest.raises(ArgumentError, match="parameter B"):
        build(ops.matmul(20, 32, 24), ONE_CORE, const_params={"B": A})


def test_a_saved_module_takes_its_constants_again(tmp_path: Path) -> None:
    file = tmp_path / "kernel.lwk"
    build(packed(), ONE_CORE, const_params={"B": B}).save(file)
    for scale in (1, 2):
        module = Module.load(file, {"B": B * np.float32(scale)})
        assert [param.name for param in module.params] == ["A", "C"]
        out = np.empty((20, 32), "float32")
        module(A, out)
        np.testing.assert_allclose(out, A @ B * scale, rtol=1e-5, atol=1e-5)


def declared() -> Schedule:
    """Return the product whose right operand is declared as a constant, and packed."""
    sch = packed()
    return sch.trace.apply_to(with_constants(ops.matmul(20, 32, 24), ["B"]))


def test_the_artifact_of_declared_constants_takes_them_when_it_is_loaded() -> None:
    artifact = compile_kernel(declared(), ONE_CORE)
    assert [param.name for param in artifact.constants] == ["B"]
    assert [param.name for param in artifact.arguments] == ["A", "C"]
    module = Module(Artifact.from_bytes(artifact.to_bytes()), {"B": B})
    out = np.empty((20, 32), "float32")
    module(A, out)
    np.testing.assert_allclose(out, A @ B, rtol=1e-5, atol=1e-5)


def test_constants_that_do_not_fit_an_artifact_are_refused() -> None:
    artifact = compile_kernel(declared(), ONE_CORE)
    with pytest.raises(ArgumentError, match="takes the constants B: const_params lacks B"):
        Module(artifact)
    with pytest.raises(ArgumentError, match="takes the constants B: const_params has A"):
        Module(artifact, {"A": A, "B": B})
    with pytest.raises(ArgumentError, match=r"parameter B is float32\[20, 24\]: expected float32"):
        Module(artifact, {"B": A})
    with pytest.raises(ArgumentError, match="parameter B is float64"):
        Module(artifact, {"B": B.astype("float64")})
    module = Module(artifact, {"B": B})
    with pytest.raises(ArgumentError, match=r"takes 2 arrays \(A, C\): got 3; the constants \(B\)"):
        module(A, B, np.empty((20, 32), "float32"))
    with pytest.raises(ArgumentError, match="takes no constants: const_params has B"):
        Module(compile_kernel(packed(), ONE_CORE), {"B": B})


def test_without_const_params_declared_constants_are_passed_in_each_call() -> None:
    module = build(declared(), ONE_CORE)
    out = np.empty((20, 32), "float32")
    module(A, B, out)
    np.testing.assert_allclose(out, A @ B, rtol=1e-5, atol=1e-5)


def test_a_declared_constant_must_be_among_the_const_params() -> None:
    with pytest.raises(BuildError, match="B: missing, and the program declares it"):
        build(declared(), ONE_CORE, const_params={"A": A})


def test_the_source_of_a_kernel_with_constants_packs_nothing() -> None:
    text = emit(declared().func, ONE_CORE).text
    assert len(text) < len(emit(packed().func, ONE_CORE).text)


def test_a_gpu_takes_declared_constants_in_each_call() -> None:
    func = with_constants(ops.relu(64), ["A"])
    artifact = compile_kernel(func, "cuda -arch=sm_86 -emulated")
    assert [param.name for param in artifact.arguments] == ["A", "B"]
    with pytest.raises(BuildError, match="not supported for 'cuda"):
        build(func, "cuda -arch=sm_86 -emulated", const_params={"A": np.ones(64, "float32")})


def test_threads_share_the_constants() -> None:
    sch = packed()
    sch.parallel(sch.get_loops("C")[1])
    module = build(sch, CpuTarget("cpu -num-cores=2"), const_params={"B": B})
    out = np.empty((20, 32), "float32")
    module(A, out)
    np.testing.assert_allclose(out, A @ B, rtol=1e-5, atol=1e-5)


def test_what_is_computed_on_the_way_to_a_copy_is_not_kept() -> None:
    """The weights of a Winograd convolution are transformed by rows, then by columns."""
    spec = "conv2d_winograd:1,4,6,6,8,1"
    func = with_constants(ops.from_spec(spec), ["W"])
    artifact = compile_kernel(func, ONE_CORE)
    assert [param.name for param in artifact.packed_copies] == ["kernel_tiles"]
    image = RNG.standard_normal((1, 4, 6, 6)).astype("float32")
    weights = RNG.standard_normal((8, 4, 3, 3)).astype("float32")
    out = np.empty((1, 8, 6, 6), "float32")
    Module(artifact, {"W": weights})(image, out)
    np.testing.assert_allclose(out, ops.reference(spec)(image, weights), rtol=1e-4, atol=1e-4)


def test_a_copy_stays_in_its_pipelined_loop() -> None:
    sch = Schedule(ops.matmul(20, 32, 24))
    i = sch.get_loops("C")[0]
    sch.compute_at(sch.cache_read("C", 1, "global"), i)
    sch.annotate(i, "software_pipeline_stage", [0, 1])
    sch.annotate(i, "software_pipeline_order", [0, 1])
    out = np.empty((20, 32), "float32")
    build(sch, ONE_CORE, const_params={"B": B})(A, out)
    np.testing.assert_allclose(out, A @ B, rtol=1e-5, atol=1e-5)


def test_sums_stay_in_registers_where_blocks_reach_beyond_the_end() -> None:
    """27 rows of panels for 20 of the product: the constant gets room for what is read, unused."""
    sch = Schedule(ops.matmul(20, 32, 24))
    i, j, k = sch.get_loops("C")
    i0, i1, i2 = sch.split(i, [3, None, 3])
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i0, j0, i1, k, i2, j1)
    copy = sch.cache_read("C", 0, "global")
    sch.compute_at(copy, i0)
    sch.annotate(copy, "buffer_tile", [0, 0, 3])
    sch.unroll(i2)
    sch.vectorize(j1)
    (left,) = (b for b in sch.func.buffers if b.name == "A")
    copies, _, rest = lower_split(sch.func, {left}, ONE_CORE)
    assert [static_shape(copy) for copy in copies] == [(9, 24, 3)]
    held = {node.buffer.name for node in walk(rest) if isinstance(node, Allocate)}
    assert "C_acc" in held
    out = np.full((20, 32), np.nan, "float32")
    build(sch, ONE_CORE, const_params={"A": A})(B, out)
    np.testing.assert_allclose(out, A @ B, rtol=1e-5, atol=1e-5)


def test_a_single_constant_may_be_copied_to_a_scalar() -> None:
    sch = Schedule(
        parse("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), S: T.Buffer((1,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * S[0]
""")
    )
    sch.reindex_cache_read("B", 1, "global", lambda vi: ())
    values, result = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    build(sch, ONE_CORE, {"S": np.full(1, 3, np.float32)})(values, result)
    np.testing.assert_array_equal(result, values * 3)

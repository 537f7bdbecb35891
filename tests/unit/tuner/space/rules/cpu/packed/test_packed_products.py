"""Packed matrix products: which operand is which, and that every candidate computes the same."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compiler import ops, te
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import emit, lower
from compiler.ir.analysis.constant_params import with_constants
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import (
    Allocate,
    For,
    static_int,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates, computed
from tuner.space.analysis.block_facts import block_facts, sites
from tuner.space.analysis.product_roles import Product, find_product
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task


def product(left: str, right: str, m: int = 13, n: int = 21, k: int = 17) -> PrimFunc:
    """Return `C[b, i, j] = sum(left * right)`, with the axes of the operands as letters."""
    extents = {"b": 3, "i": m, "j": n, "k": k}
    A = te.placeholder(tuple(extents[a] for a in left), "float32", name="A")
    B = te.placeholder(tuple(extents[a] for a in right), "float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    output = "bij" if "b" in left + right else "ij"

    def element(*axes: te.Value) -> te.Reduction:
        at = {**dict(zip(output, axes, strict=True)), "k": r}
        return te.sum(A[tuple(at[a] for a in left)] * B[tuple(at[b] for b in right)], axis=r)

    C = te.compute(tuple(extents[a] for a in output), element, name="C")
    return te.create_prim_func([A, B, C])


def found(func: PrimFunc) -> Product | None:
    facts = [block_facts(site) for site in sites(func)]
    (product,) = [find_product(f) for f in facts if f is not None and f.is_reduction]
    return product


PRODUCTS = [
    ("ik", "kj"),
    ("ki", "kj"),
    ("ik", "jk"),
    ("ki", "jk"),
    ("bik", "bkj"),
    ("bik", "bjk"),
    ("bik", "kj"),
    ("ik", "bkj"),
    ("ibk", "kbj"),
]


@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_the_operands_of_every_layout_are_told_apart(left: str, right: str) -> None:
    roles = found(product(left, right))
    assert roles is not None
    assert roles.left.read.buffer == "A"
    assert (roles.left.across, roles.left.along) == (left.index("i"), left.index("k"))
    assert (roles.right.across, roles.right.along) == (right.index("j"), right.index("k"))


@pytest.mark.parametrize("spec", ["conv2d:1,8,9,9,16,3,1,1", "matmul:1,32,40", "row_sum:8,40"])
def test_other_sums_are_no_products(spec: str) -> None:
    facts = [block_facts(site) for site in sites(ops.from_spec(spec))]
    assert [find_product(f) for f in facts if f is not None and f.is_reduction] == [None]


def check(func: PrimFunc, target: Target, *, each: int, fewest: int = 2) -> None:
    """Build and run some candidates of every packed sketch, of which there are `fewest`."""
    assert len(packed(design_space(Task(func, level(3, target.num_cores))))) >= fewest
    space = design_space(Task(func, target))
    check_candidates(func, space, packed(space), each=each)


def packed(space: SketchSpace) -> list[int]:
    return [i for i, sketch in enumerate(space.sketches) if "packed_right" in sketch.tags]


@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_every_candidate_of_every_layout_is_correct(left: str, right: str) -> None:
    check(product(left, right), here(), each=2)


@pytest.mark.parametrize(("left", "right"), [("ik", "jk"), ("bik", "bkj")])
def test_every_candidate_is_right_on_two_cores(left: str, right: str) -> None:
    check(product(left, right, 31, 61), here(2), each=1)


@pytest.mark.parametrize(
    "spec",
    [
        "matmul:33,77,129",
        "matmul:31,61,40",
        "matmul:50,20,33",
        "matmul:41,7,24",
        "matmul:64,48,80",
        "matmul:5,100,8",
        "matmul_bias_relu:13,21,34",
        "mm_relu:16,40,24",
        "dense:13,21,34",
    ],
)
def test_sizes_that_nothing_divides_are_correct(spec: str) -> None:
    check(ops.from_spec(spec), here(), each=3)


def integer_product(left: DType, right: DType, m: int, n: int, k: int) -> PrimFunc:
    """Return `C = A W.T` in 32 bits."""
    A, W = te.placeholder((m, k), left, name="A"), te.placeholder((n, k), right, name="W")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute(
        (m, n),
        lambda i, j: te.sum(A[i, r].astype("int32") * W[j, r].astype("int32"), axis=r),
        name="C",
    )
    return te.create_prim_func([A, W, C])


@pytest.mark.parametrize(
    ("left", "right", "steps"), [("int8", "int8", 32), ("uint8", "int8", 34), ("int8", "uint8", 33)]
)
def test_every_candidate_of_integers_is_correct(left: DType, right: DType, steps: int) -> None:
    check(integer_product(left, right, 13, 21, steps), here(), each=1, fewest=1)


def test_other_readers_of_weights_read_them_as_they_were() -> None:
    func = ops.quantized_dense(13, 24, 33, input_zero_point=100, zero_point=3)
    space = design_space(Task(func, here()))
    check_candidates(func, space, packed(space)[-1:], each=1)


def test_constant_integers_are_packed_in_groups_before_a_run() -> None:
    func = with_constants(integer_product("int8", "int8", 13, 24, 32), ["W"])
    check(func, here(), each=1)


NARROW_FLOATS: list[DType] = ["bfloat16", "float16", "float8_e4m3fn"]


@pytest.mark.parametrize("dtype", NARROW_FLOATS)
def test_every_candidate_of_narrow_floats_is_correct(dtype: DType) -> None:
    check(ops.matmul(13, 21, 34, dtype, transpose_b=True), here(), each=1)


def panel_types(func: PrimFunc, target: Target) -> set[str]:
    """Return the types of the panels of the right operand in some candidates."""
    space = design_space(Task(func, target))
    index = packed(space)[0]
    draws = space.draw(index, 8, np.random.default_rng(0))
    scheduled = [space.sketches[index].candidate(d).trace.apply_to(func).func for d in draws]
    nodes = [node for func in scheduled for node in walk_stmts(lower(func, target))]
    buffers = [node.buffer for node in nodes if isinstance(node, Allocate)]
    return {buffer.dtype for buffer in buffers if buffer.name == "B_global"}


@pytest.mark.parametrize("dtype", NARROW_FLOATS)
def test_panels_of_narrow_floats_are_converted_once(dtype: DType) -> None:
    assert panel_types(ops.matmul(64, 32, 32, dtype), level(3)) == {"float32"}


def test_panels_that_few_rows_use_may_stay_narrow() -> None:
    assert panel_types(ops.matmul(16, 32, 32, "bfloat16"), level(3)) == {"float32", "bfloat16"}


HALF_SUMS = [
    ("sapphirerapids", r"vfmadd\w+ph .*%zmm"),
    ("cortex-a76", r"fmla v\d+\.8h"),
    ("sifive-x280", r"vsetvli \w+, \w+, e16(.*\n)*?.*vfmacc\.v"),
]


@pytest.mark.parametrize(("cpu", "instruction"), HALF_SUMS)
def test_sums_in_float16_are_multiplied_and_added_as_such(cpu: str, instruction: str) -> None:
    func = ops.matmul(16, 64, 32, "float16", acc_dtype="float16")
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    space = design_space(Task(func, target))
    (choices,) = space.draw(packed(space)[0], 1, np.random.default_rng(0))
    scheduled = space.sketches[packed(space)[0]].candidate(choices).trace.apply_to(func)
    text = disassemble(emit(scheduled.func, target).text, target).replace("\t", " ")
    assert re.search(instruction, text), text
    assert not re.search(r"vcvtph2ps|vfmadd\w+ps|fcvtl|fmla v\d+\.4s|vfwcvt", text), text


def test_other_sums_of_float16_have_panels_of_32_bits() -> None:
    half, usual = CpuTarget("cpu -mcpu=sapphirerapids -num-cores=1"), level(3)
    wide_sums = ops.matmul(64, 32, 32, "float16", acc_dtype="float32")
    half_sums = ops.matmul(64, 32, 32, "float16", acc_dtype="float16")
    assert panel_types(wide_sums, half) == panel_types(half_sums, usual) == {"float32"}


# A shuffle of bytes, or a load of one: what operands cost that do not lie in groups.
SHUFFLES = r"\b(?:vpunpck\w+|vpshuf\w+|vpinsr\w+|vpermt\w+|zip[12]|uzp[12]|tbl|movz?bl|ldrb)\b"
GROUPED: list[tuple[str, DType, str]] = [
    ("znver3", "int8", "vpmaddwd"),
    ("znver5", "uint8", "vpdpbusd"),
    ("znver5", "int8", "vpdpbusd"),
    ("alderlake", "int8", "vpdpbusd"),
    ("neoverse-n1", "int8", "sdot"),
    ("neoverse-v2", "uint8", "usdot"),
]


@pytest.mark.parametrize(("cpu", "left", "instruction"), GROUPED)
def test_panels_of_bytes_are_read_as_the_instructions_take_them(
    cpu: str, left: DType, instruction: str
) -> None:
    func = integer_product(left, "int8", 24, 64, 64)
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    space = design_space(Task(func, target))
    for index in packed(space):
        (choices,) = space.draw(index, 1, np.random.default_rng(0))
        scheduled = space.sketches[index].candidate(choices).trace.apply_to(func)
        text = disassemble(emit(scheduled.func, target).text, target)
        assert re.search(rf"\b{instruction}\b", text), text
        assert not re.search(SHUFFLES, text), text


@pytest.mark.parametrize(
    ("cpu", "rows", "steps", "are_packed"),
    [
        ("znver4", 24, 64, False),
        ("znver4", 24, 1028, False),
        ("znver4", 24, 4096, True),  # all rows share a set of the cache
        ("znver4", 6, 4096, False),
        ("znver4", 24, 66, True),  # rows are padded
        ("znver3", 24, 64, True),  # bytes are widened
    ],
)
def test_rows_of_bytes_are_packed_only_if_panels_differ_from_them(
    cpu: str, rows: int, steps: int, are_packed: bool
) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    space = design_space(Task(integer_product("uint8", "int8", rows, 64, steps), target))
    names = {sketch.name for sketch in space.sketches}
    assert bool(names & {"packed", "packed_whole"}) == are_packed


def test_a_prime_number_of_unpacked_rows_has_a_partial_tile() -> None:
    """If tiles divided the rows, they would be single rows."""
    func = ops.matmul(197, 64, 64)
    space = design_space(Task(func, level(3)))
    (index,) = (i for i, s in enumerate(space.sketches) if s.name == "packed_right_whole")
    drawn = space.draw(index, 32, np.random.default_rng(0))
    sketch = space.sketches[index]
    assert (sketch.nests[0].tables(sketch.values(drawn)).rows > 1).all()
    check(ops.matmul(17, 24, 12), here(), each=2)


@pytest.mark.parametrize(
    ("cpu", "instruction"),
    [("znver4", "vdpbf16ps"), ("sapphirerapids", "vdpbf16ps"), ("neoverse-v1", "bfdot")],
)
def test_panels_of_bfloats_are_read_in_pairs(cpu: str, instruction: str) -> None:
    func = ops.dense(24, 64, 64, "bfloat16", constant="W")
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    space = design_space(Task(func, target))
    for index in packed(space):
        (choices,) = space.draw(index, 1, np.random.default_rng(0))
        scheduled = space.sketches[index].candidate(choices).trace.apply_to(func)
        text = disassemble(emit(scheduled.func, target).text, target)
        assert re.search(rf"\b{instruction}\b", text), text
        assert not re.search(r"\b(?:vfmadd\w+|fmla)\b", text), text


@pytest.mark.parametrize(("cpu", "group"), [("znver3", 2), ("znver5", 4)])
def test_sums_are_padded_to_whole_groups(cpu: str, group: int) -> None:
    """Both operands of 65 steps have panels of 66 or 68, in which the padding is computed."""
    func = integer_product("uint8", "int8", 24, 64, 65)
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    space = design_space(Task(func, target))
    (index,) = packed(space)
    assert space.sketches[index].nests[0].dot.size == group
    (choices,) = space.draw(index, 1, np.random.default_rng(0))
    scheduled = space.sketches[index].candidate(choices).trace.apply_to(func).func
    copies = {static_shape(buffer) for buffer in scheduled.root.alloc_buffers}
    steps = -(-65 // group) * group
    assert copies == {(24, steps), (64, steps)}


@pytest.mark.parametrize("cpu", ["skylake-avx512", "neoverse-n1"])
def test_other_machines_have_tiles_of_their_own(cpu: str) -> None:
    space = design_space(Task(ops.matmul(96, 96, 96), Target(f"cpu -mcpu={cpu} -num-cores=1")))
    assert any(len(space.draw(i, 8, np.random.default_rng(0))) == 8 for i in range(2))


def test_nan_and_infinity_stay_where_they_belong() -> None:
    """What pads a panel must not reach the output."""
    func = product("ik", "kj", 7, 9, 10)
    a, b = np.ones((7, 10), np.float32), np.ones((10, 9), np.float32)
    a[6, 3], b[9, 8] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        expected = a @ b
    space = design_space(Task(func, here()))
    for index, sketch in enumerate(space.sketches):
        for choices in space.draw(index, 4, np.random.default_rng(1)):
            found = computed(func, sketch.candidate(choices), here(), {"A": a, "B": b})
            np.testing.assert_array_equal(found["C"], expected)


@pytest.mark.parametrize(("rows", "columns", "shared"), [(64, 64, "j_0"), (65, 64, "i_0")])
def test_several_cores_share_columns_unless_there_are_more_rows(
    rows: int, columns: int, shared: str
) -> None:
    workload = ops.matmul(rows, columns, 64)
    space = design_space(Task(workload, level(3, num_cores=2)))
    choices = space.draw(0, 1, np.random.default_rng(0))[0]
    func = space.sketches[0].candidate(choices).trace.apply_to(workload).func
    loops = [n for n in walk_stmts(func.root.body) if isinstance(n, For) and n.kind == "parallel"]
    assert [loop.var.name for loop in loops] == [shared]
    assert static_int(loops[0].extent) % 2 == 0

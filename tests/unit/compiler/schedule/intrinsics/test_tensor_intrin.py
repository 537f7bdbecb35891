"""Tensor intrinsics: what may be registered, and that those we ship do what they say."""

from __future__ import annotations

from dataclasses import replace

import pytest

import loopwright as lw
from compiler import te
from compiler.ir.core.nodes import Call, Store
from compiler.schedule.intrinsics.check_intrinsic import intrinsic_problem
from compiler.schedule.intrinsics.shipped_intrinsics import SHIPPED
from compiler.schedule.intrinsics.tensor_core_intrinsics import TENSOR_CORE_INTRINSICS
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin, TensorIntrinError
from compiler.script.parser import parse

DESC = """
@T.prim_func
def desc(A: T.Buffer((1,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for j in range(8):
        with T.sblock("update"):
            vj = T.axis.spatial(8, j)
            C[vj] = C[vj] + A[0] * B[vj]
"""
IMPL = """
@T.prim_func
def impl(A: T.Buffer((1,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    C[0:8] = C[0:8] + T.Broadcast(A[0], 8) * B[0:8]
"""


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget, after each test, what it registered."""
    monkeypatch.setattr(TensorIntrin, "_registered", dict(TensorIntrin._registered))


@pytest.mark.parametrize("name", sorted(SHIPPED.keys() - TENSOR_CORE_INTRINSICS.keys()))
def test_a_shipped_intrinsic_does_what_its_description_says(name: str) -> None:
    intrin = TensorIntrin.get(name)
    assert intrinsic_problem(intrin.desc, intrin.impl) is None


def test_an_intrinsic_is_found_by_its_name() -> None:
    made = lw.TensorIntrin.register("row", parse(DESC), parse(IMPL))
    assert lw.TensorIntrin.get("row") is made


def test_a_missing_intrinsic_is_an_error_or_none() -> None:
    assert TensorIntrin.get("nothing", allow_missing=True) is None
    with pytest.raises(TensorIntrinError, match='there is no intrinsic "nothing"; there are: '):
        TensorIntrin.get("nothing")


def test_a_name_is_taken_once() -> None:
    TensorIntrin.register("row", parse(DESC), parse(IMPL))
    for name in ("row", "gemm8x8"):
        with pytest.raises(TensorIntrinError, match=f'intrinsic "{name}" is registered already'):
            TensorIntrin.register(name, parse(DESC), parse(IMPL))
    again = TensorIntrin.register("row", parse(DESC), parse(IMPL), override=True)
    assert TensorIntrin.get("row") is again
    with pytest.raises(TensorIntrinError, match="an intrinsic needs a name"):
        TensorIntrin.register("", parse(DESC), parse(IMPL))


@pytest.mark.parametrize(
    "wrong",
    [
        "C[0:8] = T.Broadcast(A[0], 8) * B[0:8]",
        "C[0:8] = C[0:8] + T.Broadcast(A[0], 8) * C[0:8]",
        "C[0:4] = C[0:4] + T.Broadcast(A[0], 4) * B[0:4]",
        "C[0:8] = C[0:8] + T.Broadcast(A[0], 8) * B[0:8]\n    A[0] = A[0] + T.float32(1)",
        "C[0:8] = C[0:8] + T.Broadcast(A[0] + T.float32(0.001), 8) * B[0:8]",
    ],
)
def test_an_implementation_that_does_something_else_is_refused(wrong: str) -> None:
    impl = IMPL.split("    C[0:8]", maxsplit=1)[0] + f"    {wrong}\n"
    with pytest.raises(TensorIntrinError, match="its implementation makes an element of"):
        TensorIntrin.register("row", parse(DESC), parse(impl))


def test_an_implementation_that_saturates_where_its_description_wraps_is_refused() -> None:
    desc, impl = (
        f"""
@T.prim_func
def main(A: T.Buffer((32,), "uint8"), B: T.Buffer((32,), "int8"), C: T.Buffer((16,), "int16")):
    {body}
"""
        for body in (
            """for j, k in T.grid(16, 2):
        with T.sblock("update"):
            vj, vk = T.axis.remap("SR", [j, k])
            C[vj] = C[vj] + T.Cast("int16", A[vj * 2 + vk]) * T.Cast("int16", B[vj * 2 + vk])""",
            'C[0:16] = C[0:16] + T.call_llvm_pure_intrin("int16x16", "llvm.x86.avx2.pmadd.ub.sw", '
            "A[0:32], B[0:32])",
        )
    )
    with pytest.raises(TensorIntrinError, match="makes an element of C"):
        TensorIntrin.register("pairs", parse(desc), parse(impl))


def test_programs_over_other_buffers_are_refused() -> None:
    for old, new, reason in (
        ("B: T.Buffer((8,)", "B: T.Buffer((16,)", "parameters B and B differ"),
        ('C: T.Buffer((8,), "float32")', 'C: T.Buffer((8,), "float64")', "C and C differ"),
    ):
        impl = IMPL.replace(old, new).replace(" * B[0:8]", "").replace("+ T.Broadcast(A[0], 8)", "")
        with pytest.raises(TensorIntrinError, match=reason):
            TensorIntrin.register("row", parse(DESC), parse(impl))
    fewer = """
@T.prim_func
def impl(C: T.Buffer((8,), "float32")):
    C[0:8] = T.Broadcast(T.float32(0), 8)
"""
    with pytest.raises(TensorIntrinError, match=r"has 1 parameter\(s\), its description 3"):
        TensorIntrin.register("row", parse(DESC), parse(fewer))


def test_a_description_of_a_part_of_its_buffers_is_refused() -> None:
    desc = DESC.replace("range(8)", "range(4)").replace("spatial(8", "spatial(4")
    with pytest.raises(TensorIntrinError, match=r"does not touch all of B: \[8\]"):
        TensorIntrin.register("row", parse(desc), parse(IMPL))


def test_a_symbolic_description_is_refused() -> None:
    symbolic = """
@T.prim_func
def main(c: T.handle):
    n = T.int32()
    C = T.match_buffer(c, (n,), "float32")
    for j in range(n):
        with T.sblock("C"):
            vj = T.axis.spatial(n, j)
            C[vj] = T.float32(0)
"""
    with pytest.raises(TensorIntrinError, match="no buffers of a fixed shape"):
        TensorIntrin.register("zero", parse(symbolic), parse(symbolic))


def test_an_implementation_that_nobody_can_run_is_refused() -> None:
    func = parse(IMPL)
    stmt = func.root.body
    assert isinstance(stmt, Store)
    call = Call("mystery", (stmt.value,), "float32")
    root = replace(func.root, body=replace(stmt, value=call))
    impl = replace(func, body=replace(func.body, block=root))
    with pytest.raises(TensorIntrinError, match="its implementation is no legal program"):
        TensorIntrin.register("row", parse(DESC), impl)


def test_an_intrinsic_is_declared_by_a_tensor_expression() -> None:
    w, x = te.placeholder((4, 8), name="w"), te.placeholder((4, 8), name="x")
    k = te.reduce_axis((0, 8), "k")
    y = te.compute((4, 4), lambda i, j: te.sum(w[i, k] * x[j, k], axis=k), "y")
    function = '"float32", "llvm.vector.reduce.fadd"'
    dot = f"T.call_llvm_pure_intrin({function}, START, w[i, 0:8] * x[j, 0:8])"
    params = ", ".join(
        f'{name}: T.Buffer({shape}, "float32")'
        for name, shape in (("w", (4, 8)), ("x", (4, 8)), ("y", (4, 4)))
    )
    compute, update = (
        parse(f"""
@T.prim_func
def {name}({params}):
    for i, j in T.grid(4, 4):
        y[i, j] = {dot.replace("START", start)}
""")
        for name, start in (("gemm4x4", "T.float32(0)"), ("gemm4x4_add", "y[i, j]"))
    )
    reset = parse("""
@T.prim_func
def clear(y: T.Buffer((4, 4), "float32")):
    for i in range(4):
        y[i, 0:4] = T.Broadcast(T.float32(0), 4)
""")
    made = TensorIntrin.declare([w, x, y], compute=compute, reset=reset, update=update)
    assert list(made) == ["gemm4x4", "clear", "gemm4x4_add"]
    assert TensorIntrin.get("clear").desc.buffers[0].name == "y"
    with pytest.raises(TensorIntrinError, match="makes an element of y"):
        TensorIntrin.declare([w, x, y], compute=update, override=True)

    z = te.compute((4, 8), lambda i, j: w[i, j] + x[i, j], "z")
    with pytest.raises(TensorIntrinError, match="z is not a reduction: it has no reset"):
        TensorIntrin.declare([w, x, z], reset=reset, override=True)

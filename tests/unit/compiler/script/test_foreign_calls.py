"""Calls that no backend runs: they are parsed, printed, scheduled, and never built."""

from __future__ import annotations

import pytest

from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.ir.core.foreign import foreign_calls
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin
from compiler.schedule.schedule import Schedule
from compiler.script import ScriptError, parse
from tests.unit.compiler.schedule.schedule_asserts import refused
from tests.unit.compiler.script.round_trips import round_tripped

COPIED_AND_CALLED = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (16, 16), "float32")
    B = T.match_buffer(b, (16, 16), "float32")
    C = T.sblock_alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
    with T.sblock("call"):
        T.reads(C[0:16, 0:16])
        T.writes(B[0:16, 0:16])
        T.evaluate(CALL)
"""
CALLS = (
    "T.tvm_load_matrix_sync(B.data, 16, 16, 16, 0, C.access_ptr('r', extent=256), 16, 'row_major')",
    "T.tvm_fill_fragment(B.data, 16, 16, 16, 0, T.float32(0), dtype='handle')",
    "T.call_extern('int32', 'f', C.data, B.access_ptr('w', offset=16))",
    "T.call_extern('f', C.data, B.data, dtype='int32')",
    "T.tvm_access_ptr(T.type_annotation(dtype='float32'), B.data, 0, 256, 2)",
)


@pytest.mark.parametrize("call", CALLS)
def test_foreign_calls_are_scheduled_and_not_built(call: str) -> None:
    func = round_tripped(COPIED_AND_CALLED.replace("CALL", call))
    sch = Schedule(func)
    sch.split(sch.get_loops("C")[0], [4, 4])
    sch.cache_write("call", 0, "local")
    assert foreign_calls(sch.func.body)
    with pytest.raises(BuildError, match=r"no backend runs|is not a parameter, or a global"):
        build(sch, "cpu -mcpu=x86-64")


def test_both_spellings_of_the_type_are_one_call() -> None:
    old, new = (parse(COPIED_AND_CALLED.replace("CALL", call)).script() for call in CALLS[2:4])
    assert 'T.call_extern("int32", "f",' in old
    assert 'T.call_extern("int32", "f",' in new


def test_a_buffer_that_a_call_gets_has_to_be_declared() -> None:
    text = COPIED_AND_CALLED.replace("CALL", CALLS[2]).replace(
        "        T.reads(C[0:16, 0:16])\n", "        T.reads()\n"
    )
    with pytest.raises(ScriptError, match=r"block call passes C to T\.call_extern"):
        parse(text)


def test_what_a_call_reads_is_not_inlined() -> None:
    sch = Schedule(parse(COPIED_AND_CALLED.replace("CALL", CALLS[3])))
    with refused(sch, "block call passes the storage of C on", at='"call"'):
        sch.compute_inline("C")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("T.tvm_mma_sync(B.data)", "T.tvm_mma_sync takes 8 argument"),
        ("T.call_extern('int32', 'f', place=1)", "T.call_extern has no argument place"),
        ("C.access_ptr('x')", 'expected "r", "w" or "rw"'),
    ],
)
def test_wrong_calls_are_refused(call: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        parse(COPIED_AND_CALLED.replace("CALL", call))


def test_an_intrinsic_of_foreign_calls_is_tensorized() -> None:
    params = "a: T.handle, b: T.handle, c: T.handle"
    matches = "".join(
        f"    {n} = T.match_buffer({n.lower()}, (4, 4), offset_factor=1)\n" for n in "ABC"
    )
    desc = parse(f"""
@T.prim_func
def desc({params}):
{matches}
    for i, j, k in T.grid(4, 4, 4):
        with T.sblock("update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")
    impl = parse(f"""
@T.prim_func
def impl({params}):
{matches}
    with T.sblock("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        T.evaluate(T.call_extern("int32", "mm", C.data, C.elem_offset // 4, A.data, B.data))
""")
    TensorIntrin.register("foreign_mm", desc, impl, override=True)
    sch = Schedule(
        parse("""
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"),
         C: T.Buffer((8, 8), "float32")):
    for i, j, k in T.grid(8, 8, 8):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")
    )
    i, j, k = (sch.split(loop, [2, 4]) for loop in sch.get_loops("C"))
    sch.reorder(i[0], j[0], k[0], i[1], j[1], k[1])
    sch.decompose_reduction("C", k[0])
    sch.tensorize(i[1], "foreign_mm")
    text = round_tripped(sch.func.script()).script()
    assert "C_1 = T.match_buffer(C[vi_o * 4:vi_o * 4 + 4, vj_o * 4:vj_o * 4 + 4]" in text
    assert 'T.call_extern("int32", "mm", C_1.data, C_elem_offset // 4, A_1.data, B_1.data)' in text
    with pytest.raises(
        BuildError, match="call_extern of mm, no function of this module, stands in a loop"
    ):
        build(sch, "cpu -mcpu=x86-64")


def test_a_description_has_no_foreign_calls() -> None:
    program = parse(COPIED_AND_CALLED.replace("CALL", CALLS[3]))
    with pytest.raises(ValueError, match="its description calls functions that have no meaning"):
        TensorIntrin.register("no_meaning", program, program)

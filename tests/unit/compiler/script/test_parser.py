import pytest

from compiler import ops
from compiler.ir.analysis.structural import structural_equal, structural_hash
from compiler.ir.core.nodes import (
    For,
    IntImm,
    Load,
    Store,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.ir.text.printer import script
from compiler.script import ScriptError, parse, parse_module

OLD_MM_RELU = """
@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def mm_relu(A: T.Buffer[(128, 128), "float32"],
                B: T.Buffer[(128, 128), "float32"],
                C: T.Buffer[(128, 128), "float32"]):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((128, 128), dtype="float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                vk = T.axis.reduce(128, k)
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""

SCHEDULED_MM_RELU = """
@tvm.script.ir_module
class Module:
    @tir.prim_func
    def mm_relu(A: tir.Buffer[(128, 128), "float32"], B: tir.Buffer[(128, 128), "float32"], \
C: tir.Buffer[(128, 128), "float32"]) -> None:
        # function attr dict
        tir.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        # body
        # with tir.block("root")
        Y = tir.alloc_buffer([128, 128], dtype="float32")
        for i, j_0 in tir.grid(128, 32):
            for j_1_init in tir.serial(4):
                with tir.block("Y_init"):
                    vi = tir.axis.spatial(128, i)
                    vj = tir.axis.spatial(128, j_0 * 4 + j_1_init)
                    tir.reads()
                    tir.writes(Y[vi, vj])
                    Y[vi, vj] = tir.float32(0)
            for k, j_1 in tir.grid(128, 4):
                with tir.block("Y_update"):
                    vi = tir.axis.spatial(128, i)
                    vj = tir.axis.spatial(128, j_0 * 4 + j_1)
                    vk = tir.axis.reduce(128, k)
                    tir.reads(Y[vi, vj], A[vi, vk], B[vk, vj])
                    tir.writes(Y[vi, vj])
                    Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
            for ax0 in tir.serial(4):
                with tir.block("C"):
                    vi = tir.axis.spatial(128, i)
                    vj = tir.axis.spatial(128, j_0 * 4 + ax0)
                    tir.reads(Y[vi, vj])
                    tir.writes(C[vi, vj])
                    C[vi, vj] = tir.max(Y[vi, vj], tir.float32(0))
"""


def elementwise(value: str, head: str = "") -> str:
    """Return a script whose block computes `value` from A, N (int32) and the iterators vi, vj."""
    return f"""
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), N: T.Buffer((8,), "int32"),
         B: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(8, 4):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
{head}            B[vi, vj] = {value}
"""


def value_of(func: PrimFunc) -> object:
    return next(node.value for node in walk(func.body) if isinstance(node, Store))


def test_the_old_spelling_is_the_operator() -> None:
    func = parse(OLD_MM_RELU)
    assert func.name == "mm_relu"
    assert structural_equal(func, ops.mm_relu())
    assert structural_hash(func) == structural_hash(ops.mm_relu())


@pytest.mark.parametrize("dialect", ["new", "middle", "old"])
@pytest.mark.parametrize("text", [OLD_MM_RELU, SCHEDULED_MM_RELU])
def test_each_spelling_is_the_same_program(text: str, dialect: str) -> None:
    func = parse(text)
    printed = script(func, dialect=dialect)  # type: ignore[arg-type]
    assert structural_equal(parse(printed), func)
    assert script(parse(printed)) == script(func)


def test_regions_that_are_not_written_are_found() -> None:
    inferred = parse(elementwise("A[vi, vj] + 1.0"))
    written = elementwise(
        "A[vi, vj] + 1.0", "            T.reads(A[vi, vj])\n            T.writes(B[vi, vj])\n"
    )
    assert structural_equal(inferred, parse(written))


def test_the_root_block_may_be_written_out() -> None:
    text = elementwise("A[vi, vj]")
    lines = text.split("\n")
    body = ["    with T.sblock('root'):", *("    " + line for line in lines[4:])]
    assert structural_equal(parse(text), parse("\n".join([*lines[:4], *body])))


def test_a_loop_with_a_start_counts_from_zero() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(2, 8):
        A[i] = 1.0
"""
    loop = parse(text).root.body
    assert isinstance(loop, For)
    assert loop.extent == IntImm(6)
    assert "A[i + 2] = " in script(parse(text))


def test_match_buffer_gives_a_handle_its_shape() -> None:
    text = """
@T.prim_func
def main(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (8,), "float32")
    B = T.match_buffer(b, [8])
    for i in T.serial(8):
        with T.block("B"):
            vi = T.axis.S(8, i)
            B[vi] = A[vi]
"""
    assert [p.name for p in parse(text).params] == ["A", "B"]


def test_handles_are_matched_after_allocations() -> None:
    text = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (8,), "float32")
    C = T.alloc_buffer((8,), "float32")
    B = T.match_buffer(b, (8,), "float32")
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] + 1.0
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = C[vi] * 2.0
"""
    matched_first = text.replace('    C = T.alloc_buffer((8,), "float32")\n', "", 1).replace(
        "    for i", '    C = T.alloc_buffer((8,), "float32")\n    for i', 1
    )
    assert structural_equal(parse(text), parse(matched_first))


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("T.max(A[vi, vj], 0)", "T.max(A[vi, vj], T.float32(0.0))"),
        ("max(A[vi, vj], min(0, 1.5))", "T.max(A[vi, vj], T.min(T.float32(0.0), T.float32(1.5)))"),
        ("1 + A[vi, vj]", "T.float32(1.0) + A[vi, vj]"),
        ("-A[vi, vj]", "A[vi, vj] * T.float32(-1.0)"),
        ("A[7 - vi, vj]", "A[7 - vi, vj]"),
        ("T.abs(A[vi, vj])", "T.fabs(A[vi, vj])"),
        ("T.float32(vi)", 'T.Cast("float32", vi)'),
        ("T.cast(N[vi], 'float32')", 'T.Cast("float32", N[vi])'),
        ("A[vi, vj] if 0 < vi < 3 else 0", None),
        ("T.if_then_else(T.And(0 < vi, not vj == 2), A[vi - 1, vj], 0)", None),
        ("T.Select((vi < 3) & (vj < 2), A[vi, vj], T.min_value('float32'))", None),
        ('T.float32("inf")', 'T.float32("inf")'),
        ("T.Cast('float32', T.floordiv(vi, 2) << 3 | 1)", 'T.Cast("float32", vi // 2 << 3 | 1)'),
        ("T.pow(A[vi, vj], 2)", "T.pow(A[vi, vj], T.float32(2.0))"),
        ("T.exp(T.infinity('float32'))", 'T.exp(T.float32("inf"))'),
        ("T.Cast('float32', T.int64(3) * 2)", 'T.Cast("float32", T.int64(3) * T.int64(2))'),
    ],
)
def test_expressions(value: str, printed: str | None) -> None:
    func = parse(elementwise(value))
    if printed is not None:
        assert f"= {printed}\n" in script(func)
    assert structural_equal(parse(script(func)), func)


def test_a_store_may_update_its_element() -> None:
    text = elementwise("0.0").replace("B[vi, vj] = 0.0", "B[vi, vj] += A[vi, vj]")
    value = value_of(parse(text))
    assert "B[vi, vj] = B[vi, vj] + A[vi, vj]" in script(parse(text))
    assert isinstance(value.lhs, Load)  # type: ignore[attr-defined]


def test_conditions_on_statements() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in T.parallel(8):
        if i < 4:
            A[i] = 1.0
        elif i == 5:
            A[5] = 2.0
        else:
            A[i] = 3.0
"""
    assert structural_equal(parse(script(parse(text))), parse(text))


def test_a_module_holds_several_functions() -> None:
    text = elementwise("A[vi, vj]") + elementwise("0.0").replace("main", "other")
    module = parse_module(text)
    assert [f.name for f in module.functions] == ["main", "other"]
    assert structural_equal(parse_module(script(module)), module)
    with pytest.raises(ScriptError, match="expected one function, got 2: main, other"):
        parse(text)


def test_imports_and_docstrings_are_passed_over() -> None:
    text = '"""Doc."""\nimport tvm\nfrom tvm.script import tir as T\n' + elementwise("A[vi, vj]")
    assert parse(text).name == "main"


def test_nothing_of_the_text_is_executed(tmp_path: object) -> None:
    for value in ("__import__('os').system('false')", "open('/etc/passwd')", "(lambda: 0)()"):
        with pytest.raises(ScriptError):
            parse(elementwise(value))
    with pytest.raises(ScriptError):
        parse("import os\nos.abort()\n")
    with pytest.raises(ScriptError):
        parse("@T.prim_func\ndef f(A: open('x')): pass\n")


def test_a_buffer_may_be_allocated_between_statements() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi]
    B = T.sblock_alloc_buffer((8,), "int32")
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = C[vi]
"""
    assert [buffer.name for buffer in parse(text).root.alloc_buffers] == ["B"]
    with pytest.raises(ScriptError, match="A is defined already"):
        parse(text.replace("B = T.sblock", "A = T.sblock"))


@pytest.mark.parametrize("detail", ["offset_factor=1", "elem_offset=0", 'scope=""', "align=64"])
def test_details_that_say_what_is_so_anyway_change_nothing(detail: str) -> None:
    text = """
@T.prim_func
def main(a: T.handle, B: T.Buffer((8,), "float32")):
    A = T.match_buffer(a, (8,), "float32")
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
"""
    changed = text.replace('"float32")\n    for', f'"float32", {detail})\n    for')
    assert changed != text
    assert structural_equal(parse(changed), parse(text))

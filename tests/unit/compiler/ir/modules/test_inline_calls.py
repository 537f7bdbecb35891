"""Calls between functions of a module: what they come to, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from compiler.driver import lower
from compiler.ir.analysis.flops import flops
from compiler.ir.analysis.structural import structural_equal, structural_hash
from compiler.ir.core.function_calls import call_function
from compiler.ir.core.nodes import Evaluate, FloatImm, IntImm, Seq
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.modules.inline_calls import entries, inline_calls, only_entry, verify_module
from compiler.ir.verify.verify import VerifyError, verify
from compiler.passes.common.error import LoweringError
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.script import ScriptError, parse, parse_module

HELPERS = """
@I.ir_module
class Module:
    @T.prim_func
    def add(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32"), s: T.float32):
        for i in range(n):
            with T.sblock("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] + s

    @T.prim_func
    def total(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
        Y = T.alloc_buffer((8,))
        Module.add(A, Y, T.float32(1))
        for i, k in T.grid(1, 8):
            with T.sblock("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + Y[vk]
"""
MAIN = (
    HELPERS
    + """
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
        Z = T.alloc_buffer((8,))
        Module.add(A, Z, T.float32(2))
        Module.total(Z, C)
"""
)
INLINED = """\
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
    # with T.sblock("root"):
    Z = T.sblock_alloc_buffer((8,))
    Y = T.sblock_alloc_buffer((8,))
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(Z[vi])
            Z[vi] = A[vi] + T.float32(2.0)
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            T.reads(Z[vi])
            T.writes(Y[vi])
            Y[vi] = Z[vi] + T.float32(1.0)
    for i, k in T.grid(1, 8):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(Y[vk])
            T.writes(C[vi])
            with T.init():
                C[vi] = T.float32(0.0)
            C[vi] = C[vi] + Y[vk]
"""


def test_calls_are_replaced_by_what_they_run() -> None:
    (func,) = inline_calls(parse_module(MAIN)).functions
    assert func.script() == INLINED
    verify(func)


def test_what_is_inlined_has_the_hash_of_what_is_written_out() -> None:
    assert structural_hash(parse(MAIN)) == structural_hash(parse(INLINED))


def test_the_entries_are_the_functions_that_no_other_calls() -> None:
    module = parse_module(MAIN)
    assert [func.name for func in entries(module)] == ["main"]
    assert only_entry(module).name == "main"
    two = IRModule((*module.functions, parse(INLINED).with_attr("global_symbol", "other")))
    assert [func.name for func in inline_calls(two).functions] == ["main", "other"]
    with pytest.raises(ValueError, match=r"the module holds main, other: pass one of them"):
        only_entry(two)


def test_a_module_without_calls_stays_as_it_is() -> None:
    module = IRModule((parse(INLINED),))
    assert inline_calls(module) is module
    assert only_entry(module) is module["main"]


def test_copies_of_one_function_share_no_variable() -> None:
    text = MAIN.replace("Module.total(Z, C)", "Module.total(Z, C)\n        Module.total(A, C)")
    func = parse(text)
    assert len({buffer.data for buffer in func.root.alloc_buffers}) == 3
    # A schedule refuses loops that share a variable.
    sch = Schedule(func)
    for name in ("B", "B_1", "B_2", "C", "C_1"):
        assert sch.get_loops(name)


def test_a_schedule_of_a_module_works_on_its_entries() -> None:
    sch = Schedule(parse_module(MAIN))
    assert [func.name for func in sch.mod.functions] == ["main"]
    assert len(sch.get_loops("C")) == 2
    with pytest.raises(ScheduleError, match="calls another one: schedule the module"):
        Schedule(parse_module(MAIN)["main"])


def test_the_hash_of_a_module_is_of_what_is_called() -> None:
    module = parse_module(MAIN)
    other = parse_module(MAIN.replace("Module.add(A, Z, T.float32(2))", "Module.add(A, Z, 2.0)"))
    assert structural_hash(module) == structural_hash(other)
    assert structural_equal(module, other)
    for change in (("T.float32(2))", "T.float32(3))"), ("def main", "def entry")):
        assert structural_hash(module) != structural_hash(parse_module(MAIN.replace(*change)))


def test_a_value_of_a_loop_is_passed() -> None:
    text = """
@I.ir_module
class Module:
    @T.prim_func
    def fill(A: T.Buffer((4, 3), "int32"), row: T.int32):
        for j in range(3):
            A[T.min(T.max(row, 0), 3), j] = row * 10

    @T.prim_func
    def main(A: T.Buffer((4, 3), "int32")):
        for i in range(4):
            Module.fill(A, i)
"""
    assert "A[T.min(T.max(i, 0), 3), j] = i * 10" in parse(text).script()


BLOCK = """with T.sblock("D"):
            Module.total(Z, C)"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Module.total(Z, C)", "Module.totl(Z, C)", "no function totl: did you mean total"),
        ("Module.total(Z, C)", "Module.total(Z)", "main passes 1 argument.* takes 2: A, C"),
        (
            "Module.total(Z, C)",
            "Module.total(C, Z)",
            r"as A: expected .*\(8,\), .* got .*\(1,\)",
        ),
        (
            "Module.total(Z, C)",
            "Module.total(4, C)",
            "passes 4 to total as A: expected a par",
        ),
        ("Module.total(Z, C)", "Module.total(C=C, A=Z)", "takes its arguments by position"),
        ("Module.total(Z, C)", "C[0] = Module.total(Z)", "total returns no value"),
        ("Module.total(Z, C)", "T.evaluate(Module.total(Z, C))", "total returns no value"),
        ("Module.total(Z, C)", BLOCK, "main calls total inside block D"),
        ("Module.total(Z, C)", "Module.main(Z, C)", "main calls main: a function can't call"),
        ("Module.add(A, Y", "Module.main(A, C)\n        Module.add(A, Y", "can't call itself"),
        ("A, Z, T.float32(2)", "A, A, T.float32(2)", "A to add both as A and as B, .* writes B"),
        ("A, Z, T.float32(2)", "A, Z, 2", "2 of type int32 for s, which is float32"),
        ("A, Z, T.float32(2)", "A, Z, A[0]", r"passes A\[0\] to add as s: expected a number"),
        ("A, Z, T.float32(2)", "A, Z, A", "the buffer A to add as s, which is a value of type fl"),
        ("A, Z, T.float32(2)", "A, C, T.float32(2)", "two values for n: 8 and 1"),
        (
            "Z = T.alloc_buffer((8,))",
            'Z = T.alloc_buffer((8,), "int32")',
            'as B: .*, got .*"int32"',
        ),
        ("Z = T.alloc_buffer((8,))", 'Z = T.alloc_buffer((8,), scope="local")', 'scope="local"'),
        ("A, Z, T.float32(2)", "Z, A, T.float32(2)", "buffer Z is read but never written"),
        (
            "Y = T.alloc_buffer((8,))",
            "T.block_attr({'x': 1})\n        Y = T.alloc_buffer((8,))",
            "calls total, whose root block has annotations",
        ),
    ],
)
def test_what_is_not_legal_is_refused_at_its_place(old: str, new: str, message: str) -> None:
    assert old in MAIN
    text = MAIN.replace(old, new)
    with pytest.raises(ScriptError, match=message) as caught:
        parse_module(text)
    assert caught.value.line > 1


def test_a_chain_of_calls_is_refused_when_it_comes_back() -> None:
    ring = parse_module(MAIN)
    back = call_function("main", [b.data for b in ring["total"].buffers])
    total = ring["total"]
    body = total.root.body
    assert isinstance(body, Seq)
    changed = Seq((back, *body.stmts))
    again = replace(total, body=replace(total.body, block=replace(total.root, body=changed)))
    with pytest.raises(VerifyError, match="total calls main, which calls total"):
        inline_calls(IRModule((ring["add"], again, ring["main"])))


def test_calls_that_double_what_they_call_are_refused_before_they_are_replaced() -> None:
    functions = [
        f"    @T.prim_func\n    def f{n}(A: T.Buffer((4,), 'float32')):\n"
        f"        Module.f{n + 1}(A)\n        Module.f{n + 1}(A)\n"
        for n in range(60)
    ]
    last = (
        "    @T.prim_func\n    def f60(A: T.Buffer((4,), 'float32')):\n"
        "        for i in range(4):\n            A[i] = 1.0\n"
    )
    text = "@I.ir_module\nclass Module:\n" + "\n".join((*functions, last))
    with pytest.raises(ScriptError, match="is too large once its calls are inlined"):
        parse(text)


def test_loops_around_calls_of_loops_are_refused_when_they_are_too_deep() -> None:
    depth = 24
    nest = "".join(f"{'    ' * (2 + n)}for i{n} in range(2):\n" for n in range(depth))
    functions = [
        f"    @T.prim_func\n    def f{n}(A: T.Buffer((4,), 'float32')):\n"
        + nest
        + f"{'    ' * (2 + depth)}{f'Module.f{n + 1}(A)' if n < 40 else 'A[0] = 1.0'}\n"
        for n in range(41)
    ]
    with pytest.raises(ScriptError, match=r"is too large: (more than 96 loops|nested deeper)"):
        parse("@I.ir_module\nclass Module:\n" + "\n".join(functions))


def test_a_call_of_a_module_that_was_made_by_hand_is_checked() -> None:
    module = parse_module(MAIN)
    func = module["add"]
    base = parse(INLINED)
    for args, message in (
        ((), "f passes 0 argument"),
        ((IntImm(1), IntImm(1), FloatImm(1.0)), "f passes 1 to add as A"),
    ):
        calls = Seq((base.root.body, call_function("add", args)))
        f = replace(base, name="f", body=replace(base.body, block=replace(base.root, body=calls)))
        with pytest.raises(VerifyError, match=message):
            verify_module(IRModule((func, f)))
    lone = replace(
        base, body=replace(base.body, block=replace(base.root, body=call_function("g", ())))
    )
    assert isinstance(lone.root.body, Evaluate)
    uses: tuple[Callable[[PrimFunc], object], ...] = (verify, flops, lower)
    for use in uses:
        with pytest.raises((ValueError, LoweringError), match="calls g, a function of a module"):
            use(lone)

"""Functions of a module that call each other by `T.call_packed` and `T.call_tir`."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.executor.functions.registry import register_func, remove_func
from compiler.ir.core.program import IRModule
from compiler.ir.modules.inline_calls import inline_calls
from compiler.schedule.schedule import Schedule
from compiler.script import ScriptError, parse_module
from loopwright.module_tasks import extract_tasks

MODULE = """
@I.ir_module
class Module:
    @T.prim_func
    def scale(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), s: T.float32):
        for i in range(8):
            with T.block("S"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * s

    @T.prim_func
    def triple(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.call_packed("scale", A, B, T.float32(3))

    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        Y = T.alloc_buffer((8,))
        T.call_packed("triple", A, Y)
        T.call_tir(Module.scale, Y, B, T.float32(5))
"""
TARGET = "cpu -mcpu=x86-64 -num-cores=1"


def _ran(module: IRModule) -> float:
    out = np.empty(8, "float32")
    build(module, TARGET)["main"](np.ones(8, "float32"), out)
    return float(out[0])


def test_packed_calls_are_calls_of_the_module() -> None:
    module = parse_module(MODULE)
    plain = MODULE.replace('T.call_packed("scale", ', "Module.scale(")
    plain = plain.replace('T.call_packed("triple", ', "Module.triple(")
    plain = plain.replace("T.call_tir(Module.scale, ", "Module.scale(")
    assert module.script() == parse_module(plain).script()
    assert parse_module(module.script()).script() == module.script()
    assert _ran(module) == 15


def test_a_scheduled_function_takes_its_place_in_the_module() -> None:
    module = parse_module(MODULE)
    triple, scaled = extract_tasks(module)
    assert (triple.names, scaled.names) == (("scale",), ("scale",))
    sch = Schedule(inline_calls(IRModule(module.functions[:2]))["triple"])
    sch.vectorize(sch.get_loops("S")[0])
    scheduled = IRModule((module["scale"], sch.func, module["main"]))
    assert "T.vectorized(8)" in inline_calls(scheduled)["main"].script()
    assert _ran(scheduled) == 15


def test_a_function_of_the_module_comes_before_a_registered_one() -> None:
    register_func("scale", lambda *_: None)
    try:
        assert _ran(parse_module(MODULE)) == 15
    finally:
        remove_func("scale")


def test_functions_of_a_module_call_registered_ones() -> None:
    register_func("test.negative", lambda a, b: np.negative(a, out=b), num_outputs=1)
    call = 'T.call_packed("test.negative", A, B)'
    try:
        negative = MODULE.replace('T.call_packed("scale", A, B, T.float32(3))', call)
        assert _ran(parse_module(negative)) == -5
    finally:
        remove_func("test.negative")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('call_packed("scale", A, B, T.float32(3))', 'call_packed("main", A, B)', "call itself"),
        ('call_packed("scale", A, B, T.float32(3))', 'call_packed("triple", A, B)', "call itself"),
        ('"triple", A, Y', '"triple", A', r"passes 1 argument\(s\) to triple, which takes 2: A, B"),
        ("Module.scale, ", "Module.scal, ", "the module has no function scal: did you mean scale"),
        ("Module.scale, ", "A, ", "T.call_tir takes a function of the module"),
    ],
)
def test_wrong_calls_are_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        parse_module(MODULE.replace(old, new))


def test_a_function_that_is_not_there_is_refused() -> None:
    module = parse_module(MODULE.replace('"triple", A', '"tripel", A'))
    with pytest.raises(BuildError, match=r"T.call_packed of tripel, no function of this module"):
        build(module, TARGET)

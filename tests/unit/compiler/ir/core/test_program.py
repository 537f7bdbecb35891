from __future__ import annotations

import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import (
    AnnotationValue,
)
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ops import matmul
from compiler.script import parse, parse_module


@pytest.fixture
def func() -> PrimFunc:
    return matmul(4, 4, 4)


def test_a_global_symbol_names_the_function(func: PrimFunc) -> None:
    named = func.with_attr({"global_symbol": "mm_relu"})
    assert named.name == "mm_relu"
    assert dict(named.attrs)["global_symbol"] == "mm_relu"
    assert func.name == "matmul"
    assert structural_equal(named, func)
    assert parse(named.script()).name == "mm_relu"


def test_attributes_are_added_and_replaced(func: PrimFunc) -> None:
    twice = func.with_attr("unit", 1).with_attr({"unit": 2, "sizes": (1, 2)})
    assert twice.attrs == (*func.attrs, ("unit", 2), ("sizes", (1, 2)))
    assert twice.name == func.name


@pytest.mark.parametrize("name", ["", "two words", "def", 3])
def test_a_global_symbol_that_is_no_name_is_refused(func: PrimFunc, name: AnnotationValue) -> None:
    with pytest.raises(ValueError, match="expected the name of a function"):
        func.with_attr("global_symbol", name)


def test_a_key_without_value_is_refused(func: PrimFunc) -> None:
    with pytest.raises(TypeError, match="a key and its value, or a mapping"):
        func.with_attr("unit")
    with pytest.raises(TypeError, match="a key and its value, or a mapping"):
        func.with_attr({"unit": 1}, 2)


def test_a_module_finds_functions_and_shows_itself(
    func: PrimFunc, capsys: pytest.CaptureFixture[str]
) -> None:
    module = IRModule((func, matmul(4, 4, 4).with_attr("global_symbol", "other")))
    assert module["other"].name == "other"
    with pytest.raises(
        KeyError, match="no function 'third' in the module: expected one of matmul, other"
    ):
        _ = module["third"]
    module.show()
    assert structural_equal(parse_module(capsys.readouterr().out), module)


def test_a_mapping_names_the_functions_of_a_module(func: PrimFunc) -> None:
    module = IRModule({"main": func})  # type: ignore[arg-type]
    assert [f.name for f in module.functions] == ["main"]
    assert module["main"].body is func.body


def test_a_module_of_anything_else_is_refused(func: PrimFunc) -> None:
    with pytest.raises(TypeError, match="takes a tuple or a mapping of functions, not a PrimFunc"):
        IRModule(func)  # type: ignore[arg-type]


def test_the_functions_of_a_module_have_distinct_names(func: PrimFunc) -> None:
    with pytest.raises(ValueError, match=f"two functions of the module are called {func.name}"):
        IRModule((func, func))

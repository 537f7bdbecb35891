"""The registry: one declaration makes an operator known to all that look for one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from compiler import ops, te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build, operand
from compiler.ops.operator import OPERATORS, Array, Operator, Options, operator
from compiler.ops.recognize import recognize
from compiler.ops.recognizers.facts import ProgramFacts
from compiler.ops.spec import Spec


def scale_tensor(x: te.Tensor, *, factor: int = 3) -> te.Tensor:
    """Return `x * factor`."""
    return te.compute(x.shape, lambda *i: x[i] * factor, name="B")


def scale_reference(p: Options, x: Array) -> Array:
    return np.asarray(x * p.factor)


def recognize_scale(facts: ProgramFacts) -> Iterator[Spec]:
    for factor in facts.floats:
        yield facts.spec("scale", *facts.output, factor=int(factor))


@pytest.fixture
def scale() -> Iterator[Operator]:
    @operator(scale_tensor, reference=scale_reference, recognize=recognize_scale)
    def scale(*shape: int, factor: int = 3, dtype: DType = "float32") -> PrimFunc:
        """Multiply a tensor by a number."""
        x = operand(shape, dtype, "A")
        return build("scale", [x], scale_tensor(x, factor=factor))

    yield OPERATORS["scale"]
    del OPERATORS["scale"]


@pytest.mark.usefixtures("scale")
def test_an_operator_has_its_name_its_text_and_its_reference() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for func in (ops.from_spec("scale:2,3,factor=5"), ops.OPERATORS["scale"](2, 3, factor=5)):
        assert func.name == "scale"
        assert [buffer.name for buffer in func.buffers] == ["A", "B"]
    np.testing.assert_array_equal(ops.reference("scale:2,3,factor=5")(x), x * 5)
    np.testing.assert_array_equal(ops.reference("scale", 2, 3)(x), x * 3)
    assert getattr(ops, "scale") is OPERATORS["scale"].program  # noqa: B009 - unknown to checkers
    assert getattr(ops.tensors, "scale") is scale_tensor  # noqa: B009
    assert "scale" in dir(ops)


@pytest.mark.usefixtures("scale")
def test_an_operator_is_recognized() -> None:
    assert str(recognize(ops.from_spec("scale:2,3,factor=7"))) == "scale:2,3,factor=7"
    assert str(recognize(ops.from_spec("scale:4:float64"))) == "scale:4:float64"


@pytest.mark.usefixtures("scale")
def test_mistakes_about_an_operator_name_it() -> None:
    with pytest.raises(ops.OperatorError, match=r"scale has no option 'facto': did you mean fac"):
        ops.from_spec("scale:4,facto=2")
    with pytest.raises(ops.OperatorError, match=r"did you mean scale\? It is written scale:d0"):
        ops.from_spec("scael:4")
    with pytest.raises(TypeError, match="did you mean 'factor'"):
        ops.OPERATORS["scale"](4, facto=2)


def test_without_its_declaration_an_operator_is_unknown() -> None:
    with pytest.raises(ops.OperatorError, match="unknown operator 'scale'"):
        ops.from_spec("scale:4")


def test_a_name_is_declared_once(scale: Operator) -> None:
    with pytest.raises(ValueError, match="operator scale is declared twice"):
        operator(scale_tensor, reference=scale_reference)(scale.program)

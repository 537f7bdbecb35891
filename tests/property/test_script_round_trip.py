"""What is printed parses back to the same program, in every spelling."""

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

from compiler.ir.analysis.structural import structural_equal, structural_hash
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.spelling import Dialect
from compiler.ir.text.printer import lines, mark, script
from compiler.ir.verify.verify import VerifyError, verify
from compiler.script import parse
from tests.property.generators.programs import programs

# Whole programs take minutes to shrink, and are read well enough as they are.
SETTINGS = settings(
    max_examples=60,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("dialect", ["new", "middle", "old"])
@SETTINGS
@given(func=programs())
def test_a_printed_program_parses_back(func: PrimFunc, dialect: Dialect) -> None:
    assume(_is_legal(func))  # some race
    text = script(func, dialect=dialect)
    parsed = parse(text)
    assert structural_equal(parsed, func)
    assert structural_hash(parsed) == structural_hash(func)
    assert script(parsed, dialect=dialect) == text
    assert parsed.name == func.name
    assert dict(parsed.attrs) == dict(func.attrs)


def _is_legal(func: PrimFunc) -> bool:
    try:
        verify(func)
    except VerifyError:
        return False
    return True


@SETTINGS
@given(func=programs())
def test_every_line_can_be_marked(func: PrimFunc) -> None:
    assume(_is_legal(func))
    printed = list(lines(func))
    for node in (node for _, node in printed if node is not None):
        assert any(line.startswith(">") for line in mark(func, node).split("\n"))
    assert structural_equal(parse("\n".join(line for line, _ in printed)), func)

"""Operators with names among their extents are symbolic programs."""

from __future__ import annotations

import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ops.error import OperatorError
from compiler.ops.spec import from_spec, parse_spec


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        ("matmul:M,512,512", {"M": 77}),
        ("matmul:M,N,K,acc_dtype=float32:float16", {"M": 5, "N": 300, "K": 211}),
        ("dense:M,40,211,bias=True,activation=relu", {"M": 9}),
        ("softmax:rows,768", {"rows": 1}),
        ("conv2d:N,8,16,16,8,3,1,1", {"N": 4}),
        ("attention:B,2,S,S,16", {"B": 3, "S": 60}),
    ],
)
def test_a_symbolic_program_is_that_of_each_size(spec: str, sizes: dict[str, int]) -> None:
    func = from_spec(spec)
    assert {var.name for var in symbolic_vars(func)} == {*sizes}
    assert str(parse_spec(spec)) == spec
    name, arguments = spec.split(":", 1)
    words = [str(sizes.get(word, word)) for word in arguments.split(":")[0].split(",")]
    static = ":".join([name, ",".join(words), *arguments.split(":")[1:]])
    assert structural_equal(func.specialize(dict(sizes.items())), from_spec(static))


@pytest.mark.parametrize("spec", ["mean:M,64", "conv2d:1,8,H,H,8,3,1,1", "matmul:211,1009,M"])
def test_an_operator_whose_size_decides_about_more_is_refused(spec: str) -> None:
    with pytest.raises(OperatorError, match="no program for all sizes"):
        from_spec(spec)

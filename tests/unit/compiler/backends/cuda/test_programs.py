"""Programs of the golden files run on an emulated GPU by their default binding.

They have what operators lack: scattered and masked accesses, names, streams, reinterpreted bits.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.ir.core.program import PrimFunc
from compiler.script.parser import parse
from compiler.target.cuda import CudaTarget
from tests.golden.codegen import access_programs, loop_programs, value_programs
from tests.unit.compiler.backends.cuda.operator_kernels import CompiledPrograms

H200 = CudaTarget("cuda -gpu=h200 -emulated")
PROGRAMS: list[Callable[[], PrimFunc]] = [
    loop_programs.guarded_tiles,
    loop_programs.loop_of_varying_extent,
    access_programs.transposed_tiles,
    access_programs.transposed_bytes,
    access_programs.strided_loads,
    access_programs.scattered_lanes,
    access_programs.indices_of_digits,
    access_programs.masked_accesses,
    access_programs.branches,
    access_programs.masked_register,
    access_programs.streams,
    value_programs.reinterpreted,
    value_programs.booleans_and_narrowed_integers,
    value_programs.names,
    value_programs.library_functions,
]


def ones_among_bits() -> PrimFunc:
    """Return a program that counts the ones of integers of several sizes."""
    dtypes = ("int8", "uint16", "int32", "int64")
    params = ", ".join(
        f'{d}_in: T.Buffer((64,), "{d}"), {d}_out: T.Buffer((64,), "{d}")' for d in dtypes
    )
    blocks = [
        f"""
    for i in range(64):
        with T.sblock("{d}"):
            v = T.axis.spatial(64, i)
            {d}_out[v] = T.popcount({d}_in[v]) * T.{d}(3)"""
        for d in dtypes
    ]
    return parse(f"@T.prim_func\ndef main({params}):{''.join(blocks)}")


PROGRAMS.append(ones_among_bits)


@pytest.fixture(scope="module")
def compiled() -> CompiledPrograms:
    return CompiledPrograms({program.__name__: program() for program in PROGRAMS}, H200)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_equals_the_oracle(
    compiled: CompiledPrograms, program: Callable[[], PrimFunc]
) -> None:
    assert compiled.largest_error(program.__name__) < 1


def test_an_instruction_of_cpus_is_refused() -> None:
    with pytest.raises(BuildError, match="CUDA has no function 'call_llvm_pure_intrin'"):
        build(access_programs.vectors(), H200)

"""The LLVM text of small programs for named CPUs; between them they reach every emitter.

A change that is meant to keep the code that is generated leaves every golden file as it is.
`pytest tests/golden/codegen --update-golden` writes the files anew; the difference is reviewed like
code.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler.backends.cpu.codegen.machine_code import verify_module
from compiler.backends.cpu.codegen.threads.thread_pool import thread_pool
from compiler.driver import emit
from compiler.ir.core.program import PrimFunc
from compiler.target.target import Target
from tests.golden.codegen import access_programs, loop_programs, value_programs

Golden = Callable[[str], None]

# Vectors of 128 bits without FMA or conversions of float16; of 256 bits; of 512 bits with dot
# products of bytes; and of 128 bits on ARM, first without and then with dot products.
V2, ZEN3, ZEN5, A72, N1 = "x86-64-v2", "znver3", "znver5", "cortex-a72", "neoverse-n1"

CASES: dict[Callable[[], PrimFunc], tuple[str, ...]] = {
    loop_programs.scalar_loops: (V2, A72),
    loop_programs.vector_loop: (V2, ZEN3, ZEN5, A72),
    loop_programs.guarded_tiles: (ZEN3,),
    loop_programs.loop_of_varying_extent: (V2,),
    loop_programs.register_tile: (ZEN3, A72),
    access_programs.transposed_tiles: (V2, ZEN3),
    access_programs.transposed_strips: (ZEN3,),
    access_programs.transposed_wide_tile: (ZEN5,),
    access_programs.transposed_bytes: (ZEN3,),
    access_programs.strided_loads: (ZEN3, A72),
    access_programs.strided_load_under_a_mask: (ZEN3,),
    access_programs.scattered_lanes: (ZEN3, A72),
    access_programs.indices_of_digits: (ZEN3,),
    access_programs.masked_accesses: (ZEN3, ZEN5),
    access_programs.branches: (ZEN3,),
    access_programs.masked_register: (ZEN3,),
    access_programs.streams: (ZEN3,),
    access_programs.allocations: (V2,),
    access_programs.vectors: (ZEN3,),
    value_programs.bytes_in_vectors: (ZEN3, A72),
    value_programs.bytes_in_scalars: (V2,),
    value_programs.unsigned_in_vectors: (ZEN5,),
    value_programs.float32_in_scalars: (V2, A72),
    value_programs.float32_in_vectors: (ZEN3, A72),
    value_programs.float64_in_vectors: (ZEN5,),
    value_programs.float16_in_scalars: (ZEN3,),
    value_programs.float16_in_vectors: (V2, ZEN3),
    value_programs.bfloat16_in_vectors: (ZEN5, A72),
    value_programs.float8_e4m3fn_in_vectors: (V2,),
    value_programs.float8_e5m2_in_vectors: (ZEN3,),
    value_programs.reinterpreted: (V2,),
    value_programs.booleans_and_narrowed_integers: (ZEN3,),
    value_programs.names: (ZEN3,),
    value_programs.dot_products_of_bytes: (ZEN3, A72, N1),
    value_programs.dot_products_of_mixed_bytes: (ZEN5,),
    value_programs.dot_products_of_words: (V2, ZEN5),
    value_programs.polynomials: (ZEN3, A72),
    value_programs.polynomials_with_rare_branches: (ZEN3,),
    value_programs.polynomials_of_scalars: (ZEN3,),
    value_programs.library_functions: (V2, ZEN3),
    value_programs.functions_of_doubles: (ZEN3,),
    value_programs.chains_of_polynomials: (ZEN3,),
    loop_programs.parallel_loop: (ZEN3, A72),
    loop_programs.parallel_loop_in_a_loop: (ZEN3,),
    loop_programs.parallel_loop_with_choices: (ZEN5,),
    loop_programs.parallel_loop_too_small_to_launch: (ZEN3,),
}
NUM_CORES = 4


@pytest.mark.parametrize(
    ("program", "cpu"),
    [
        pytest.param(program, cpu, id=f"{program.__name__}.{cpu}")
        for program, cpus in CASES.items()
        for cpu in cpus
    ],
)
def test_programs(program: Callable[[], PrimFunc], cpu: str, golden: Golden) -> None:
    target = Target(f"cpu -mcpu={cpu} -num-cores={NUM_CORES}")
    module = emit(program(), target)
    verify_module(module.text)
    golden(
        f"; workspace: {module.workspace_bytes} bytes, threads: {module.num_threads}\n{module.text}"
    )


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_thread_pool(architecture: str, golden: Golden) -> None:
    golden(thread_pool(architecture, NUM_CORES))

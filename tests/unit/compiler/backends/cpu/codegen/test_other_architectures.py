"""CPUs of other architectures by name: their spaces, and the inner loops of their products."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compiler import ops
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import emit
from compiler.ir.core.program import PrimFunc
from compiler.target.cpu import CpuTarget
from compiler.target.cpus import CPUS
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.space.tables.register_tile import RegisterTile
from tuner.task import Task

NEON = r"fmla v\d+\.4s, v\d+\.4s, v\d+\.s\[\d\]"
RVV = r"vfm(?:acc|add)\.vf v\d+, f\w+, v\d+"
PRODUCTS = {
    "cortex-a53": NEON,
    "cortex-a72": NEON,
    "cortex-a76": NEON,
    "neoverse-n1": NEON,
    "neoverse-n2": NEON,
    "neoverse-v1": NEON,
    "neoverse-v2": NEON,
    "apple-m1": NEON,
    "ampere1": NEON,
    "sifive-x280": RVV,
    "spacemit-x60": RVV,
}
"""Multiply-adds of a vector and one number, which needs no register for its copies."""
SCALAR = r"\bfmadd\.?s? [sf]\w+,|\bfmadd\.s\b|\b(?:bl|call)\b"
STACK = r"\[sp\b|\(sp\)|\bvs\d+r\.v\b"
SPECS = (
    "matmul:64,96,64",
    "conv2d:1,16,14,14,32,3,1,1",
    "softmax:32,200",
    "layer_norm:32,200",
    "gelu:64,200",
    "attention:1,2,64,64,32",
)


def test_all_of_other_architectures_are_tested() -> None:
    # 32-bit ARM multiplies vectors by vectors alone: copies of numbers take registers there.
    archs = ("aarch64", "riscv64")
    assert set(PRODUCTS) == {name for name, cpu in CPUS.items() if cpu.arch in archs}


@pytest.mark.parametrize("spec", SPECS)
def test_operators_have_schedules(spec: str) -> None:
    func = ops.from_spec(spec)
    for cpu in ("neoverse-v2", "cortex-a72", "sifive-x280", "spacemit-x60"):
        space = space_of(func, cpu)
        drawn = [space.draw(i, 8, np.random.default_rng(0)) for i in range(len(space.sketches))]
        assert sum(map(len, drawn)) >= 8, cpu


@pytest.mark.parametrize("cpu", PRODUCTS)
def test_the_inner_loop_of_a_product_is_multiply_adds_of_vectors(cpu: str) -> None:
    func = ops.matmul(64, 96, 64)
    space = space_of(func, cpu)
    (index,) = (i for i, s in enumerate(space.sketches) if s.name == "packed_whole")
    sketch, drawn = space.sketches[index], space.draw(index, 32, np.random.default_rng(0))
    tile = RegisterTile(sketch.nests[0].tables(sketch.values(drawn)), CpuTarget.of(space.target))
    # With fewer registers to spare, LLVM's scheduler may spill one.
    choices = drawn[np.argmax(np.where(tile.registers <= 27, tile.accumulators, 0))]
    loop = inner_loop(func, space, index, choices)
    products = re.findall(PRODUCTS[cpu], loop)
    assert len(products) >= 0.5 * loop.count("\n"), loop
    assert not re.search(SCALAR, loop), loop
    assert not re.search(STACK, loop), loop


def space_of(func: PrimFunc, cpu: str) -> SketchSpace:
    return design_space(Task(func, CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")))


def inner_loop(func: PrimFunc, space: SketchSpace, index: int, choices: np.ndarray) -> str:
    """Return the code of the loop with the most multiply-adds, without loops around it."""
    scheduled = space.sketches[index].candidate(choices).trace.apply_to(func).func
    target = CpuTarget.of(space.target)
    text = disassemble(emit(scheduled, target).text, target)
    text = text[text.index("body:") :].replace("\t", " ")
    loops = [
        text[label.end() : branch.start()]
        for label in re.finditer(r"^(\.L\w+):.*\n", text, re.MULTILINE)
        for branch in re.finditer(rf"^ (?:b\.?\w*) .*{re.escape(label[1])}$", text, re.MULTILINE)
        if branch.start() > label.end()
    ]
    inner = [loop for loop in loops if not re.search(r"^\.L\w+:", loop, re.MULTILINE)]
    return max(inner, key=lambda loop: len(re.findall(r"fmla|vfm", loop)))

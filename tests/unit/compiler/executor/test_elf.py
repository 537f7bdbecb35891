"""Objects that can't be linked are refused; what can be linked is what a linker would make."""

from __future__ import annotations

import random

import pytest

from compiler.executor.elf import PAGE_BYTES, ObjectFile
from compiler.executor.error import PackageError
from compiler.executor.loaded_code import LoadedCode, external_address
from compiler.package.link import compile_plan
from compiler.target.cpu import CpuTarget
from tests.model_plans import classifier
from tests.targets import here

CPUS = ("x86-64-v3", "cortex-a72", "cortex-a9", "sifive-x280")


def _object(cpu: str) -> bytes:
    return compile_plan(classifier(CpuTarget(f"cpu -mcpu={cpu} -num-cores=1"))[0])


@pytest.mark.parametrize("cpu", CPUS)
def test_damaged_objects_are_refused_or_linked(cpu: str) -> None:
    content = _object(cpu)
    rng = random.Random(0)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(content)
        # Most of an object is code: its headers and tables are at both ends.
        for _ in range(3):
            near = rng.choice(
                (rng.randrange(64), -rng.randrange(1, 1500), rng.randrange(len(content)))
            )
            damaged[near] = rng.randrange(256)
        try:
            image = ObjectFile(bytes(damaged)).link(1 << 32, len)
        except PackageError:
            refused += 1
        else:
            assert len(image.content) % PAGE_BYTES == 0
    assert refused > 500


@pytest.mark.parametrize("cpu", CPUS)
def test_an_object_that_is_cut_off_is_refused(cpu: str) -> None:
    content = _object(cpu)
    for size in range(0, len(content), 97):
        with pytest.raises(PackageError):
            ObjectFile(content[:size])


def test_a_function_that_this_system_lacks_is_named() -> None:
    with pytest.raises(PackageError, match="calls 'lw_unknown', which this system does not have"):
        external_address("lw_unknown")


def test_a_function_that_the_object_lacks_is_named() -> None:
    code = LoadedCode(compile_plan(classifier(here())[0]))
    assert code.address("mnist_run")
    with pytest.raises(PackageError, match="has no function 'lw_kernel'"):
        code.address("lw_kernel")

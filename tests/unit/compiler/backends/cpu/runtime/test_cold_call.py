"""Calls that are timed with their arrays outside the caches."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.backends.backend import backend_of
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.backends.cpu.runtime import cold_call
from compiler.backends.cpu.runtime.cold_call import LINE_BYTES, ColdCall, eviction_code, lines_of
from compiler.driver import build
from compiler.executor.memory import aligned_empty
from compiler.ops import from_spec
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from tests.targets import here, level

COLD = Target(f"{here().name} -cache=cold")
is_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the instruction is of x86")


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Increment the first byte of each line, by the same code that otherwise flushes it."""
    monkeypatch.setitem(cold_call._INSTRUCTIONS, "x86_64", ("incb ($0)", "mfence"))
    monkeypatch.setattr(cold_call, "_MAX_SAMPLE_SECS", 3600.0)  # a loaded host makes all calls, too
    cold_call._evictor.cache_clear()
    yield
    cold_call._evictor.cache_clear()


@given(st.integers(0, 1 << 20), st.integers(0, 1000))
def test_the_lines_are_those_of_the_bytes(address: int, size_bytes: int) -> None:
    first, num_lines = lines_of(address, size_bytes)
    lines = {byte // LINE_BYTES for byte in range(address, address + size_bytes)}
    assert lines == {first // LINE_BYTES + n for n in range(num_lines)}


@is_x86
@pytest.mark.usefixtures("counting")
def test_each_line_of_all_arrays_is_evicted_before_each_timed_call() -> None:
    arrays = [aligned_empty((size,), "uint8") for size in (4096, 1, LINE_BYTES + 1, 0)]
    for array in arrays:
        array.fill(0)
    seen = []
    call = ColdCall(lambda: seen.append([array[::LINE_BYTES].tolist() for array in arrays]), arrays)
    assert call.mean_secs(1, 3) >= 0
    assert seen == [[[n] * 64, [n], [n, n], []] for n in (1, 2, 3)]
    call()
    assert seen[3] == seen[2], "a call that is not timed evicts nothing"


def test_evicted_arrays_keep_their_values() -> None:
    array = np.arange(5000, dtype="float32")
    call = ColdCall(lambda: None, [array])
    array += 1
    call.evict()
    np.testing.assert_array_equal(array, np.arange(1, 5001, dtype="float32"))


@is_x86
def test_the_code_flushes_lines_and_waits() -> None:
    llvm.initialize_native_asmparser()
    assembly = disassemble(eviction_code(level(2)), level(2))
    assert assembly.index("clflush") < assembly.index("mfence")


def test_the_code_for_aarch64_is_of_its_instructions() -> None:
    # LLVM's assembler of another architecture can't be loaded here.
    text = eviction_code(CpuTarget("cpu -mcpu=neoverse-n1 -num-cores=1"))
    llvm.parse_assembly(text).verify()
    assert text.index("dc civac, $0") < text.index("dsb ish")


@is_x86
@pytest.mark.usefixtures("counting")
def test_a_kernel_for_cold_caches_is_timed_with_all_of_its_arrays_evicted() -> None:
    for target, num_evictions in ((COLD, 2), (here(), 0)):
        arrays = [aligned_empty((4, 4), "float32") for _ in range(3)]
        for array in arrays:
            array.fill(0)
        run = build(from_spec("matmul:4,4,4"), target).bind(*arrays)
        assert backend_of(target).time_calls(run, 1, 2) > 0
        first_bytes = [int(array.view("uint8").flat[0]) for array in arrays[:2]]
        assert first_bytes == [num_evictions] * 2  # each array is one line


def test_a_library_beside_cold_kernels_is_timed_cold() -> None:
    def clock(run: object, num_threads: int, calls: int) -> float:
        return 0.0

    backend = backend_of(COLD)
    assert backend.clock_of_library(clock, [], here()) is clock
    assert backend.clock_of_library(clock, [np.zeros(4)], COLD)(lambda: None, 1, 1) > 0

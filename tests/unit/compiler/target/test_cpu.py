"""CPUs by name: equal targets, and texts that are refused."""

from __future__ import annotations

import pytest

from compiler.target.cpu import CpuTarget
from compiler.target.error import TargetError
from compiler.target.target import Target


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tpu", "unknown target kind 'tpu'"),
        ("", "unknown target kind ''"),
        ("cpu -mcpu=znver9", "did you mean 'znver"),
        ("cpu -num-cores=0", "bad number of cores '0'"),
        ("cpu -num-cores=99999", "expected 1 to 1024"),
        ("cpu fast", "unknown option 'fast'"),
        (
            "cpu -cache=hot",
            "bad state of caches 'hot' in target 'cpu -cache=hot': expected cold or",
        ),
        ("cpu -mcpu=spacemit-x60 -cache=cold", "no instruction that evicts"),
        ("cuda -gpu=h200 -cache=cold", "is for CPUs: leave it out"),
        ("cpu -mcpu=cortex-a72 -mtriple=x86_64-linux-gnu", "contradicts itself: cortex-a72 is of"),
        ("cpu -mtriple=aarch64-apple-darwin", "unknown triple 'aarch64-apple-darwin'"),
        ("cpu -mtriple=armv7-linux-gnueabi", "passes floats in integer registers"),
        ("cpu -mcpu=cortex-a76 -mattr=+dotprof", "did you mean 'dotprod'"),
        ("cpu -mcpu=cortex-a76 -mattr=dotprod", r"expected \+NAME or -NAME"),
        ("cpu -mcpu=cortex-a9 -mattr=-neon", "all code for armv7l uses neon"),
        ({"mcpu": "cortex-a72"}, "has its kind, such as 'cpu'"),
        ({"kind": "cpu", "mcpu": "cortex a72"}, "option 'mcpu' of a target is 'cortex a72'"),
        ({"kind": "cpu", "keys": ["cpu"]}, "unknown option '-keys=cpu'"),
        ({"kind": "cpu", "mattr": []}, "expected a word or a number"),
    ],
)
def test_a_target_that_means_nothing_is_refused(
    text: str | dict[str, object], message: str
) -> None:
    with pytest.raises(TargetError, match=message):
        Target(text)


def test_equal_targets_are_equal_however_they_are_written() -> None:
    target = CpuTarget("cpu -num-cores=2 -mcpu=znver3")
    assert target == Target("llvm -num-cores=2 -mcpu=znver3")
    assert target == Target("cpu -mcpu=znver3 -num-cores=2")
    assert Target(target.name) == target
    assert Target("cpu -mcpu=native") == Target()
    assert target.vector_bits == 256
    assert target.num_vector_registers == 16
    assert target.label == "cpu/znver3"


def test_cold_caches_make_another_target_on_the_same_machine() -> None:
    warm, cold = (
        Target("cpu -mcpu=znver3 -num-cores=2"),
        Target("cpu -cache=cold -mcpu=znver3 -num-cores=2"),
    )
    assert cold.name == "cpu -mcpu=znver3 -num-cores=2 -cache=cold"
    assert Target(cold.name) == cold != warm == Target(f"{warm.name} -cache=warm")
    assert (cold.is_cold, warm.is_cold) == (True, False)
    assert cold.label == warm.label == warm.timing_label == "cpu/znver3"
    assert cold.timing_label == "cpu/znver3-cold"


@pytest.mark.parametrize(
    ("written", "name", "triple"),
    [
        (
            "llvm -target=armv7l-none-linux-gnueabihf",  # as the notes have it
            "cpu -mcpu=cortex-a9",
            "armv7-unknown-linux-gnueabihf",
        ),
        (
            "cpu -mtriple=aarch64-linux-gnu -mattr=+dotprod",
            "cpu -mcpu=cortex-a53 -mattr=+dotprod",
            "aarch64-unknown-linux-gnu",
        ),
        (
            {"kind": "llvm", "mcpu": "cortex-a76", "mattr": ["-fullfp16", "+bf16"]},
            "cpu -mcpu=cortex-a76 -mattr=+bf16,-fullfp16",
            "aarch64-unknown-linux-gnu",
        ),
        (
            "cpu -mcpu=cortex-a76 -mattr=+i8mm,-i8mm,+dotprod",  # which it has
            "cpu -mcpu=cortex-a76",
            "aarch64-unknown-linux-gnu",
        ),
        (
            {"kind": "cpu", "mcpu": "sifive-x280", "mattr": "-zvl512b,+zvl256b"},
            "cpu -mcpu=sifive-x280 -mattr=+zvl256b,-zvl512b",
            "riscv64-unknown-linux-gnu",
        ),
    ],
)
def test_a_target_is_named_in_other_ways(
    written: str | dict[str, object], name: str, triple: str
) -> None:
    target = CpuTarget(written)
    options = f"{name} -num-cores={target.num_cores}"
    assert target.name == options
    assert Target(options) == target
    assert target.triple == triple


def test_a_removed_feature_takes_those_along_that_require_it() -> None:
    without = CpuTarget("cpu -mcpu=znver4 -mattr=-fma -num-cores=1")
    assert without.name == "cpu -mcpu=znver4 -mattr=-fma -num-cores=1"
    assert without.vector_bits == 256
    assert not without.has_fma
    features = without.features.split(",")
    assert {"+avx2", "-fma", "-avx512f", "-avx512vnni"} <= set(features)
    assert "+avx512bf16" not in features
    back = CpuTarget("cpu -mcpu=znver4 -mattr=-fma,+avx512vnni -num-cores=1")
    assert back.vector_bits == 512
    assert "-avx512bw" in back.features.split(",")


def test_cpus_of_32_bits_differ_in_what_code_may_use() -> None:
    older, newer = (
        CpuTarget(f"cpu -mcpu={name} -num-cores=1") for name in ("cortex-a9", "cortex-a7")
    )
    assert (older.has_fma, newer.has_fma) == (False, True)
    assert older.num_vector_registers == 16
    assert older.has_halves
    assert not CpuTarget("cpu -mcpu=cortex-a9 -mattr=-fp16").has_halves

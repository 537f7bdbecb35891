"""The list of recordings, and the sets that were made of it."""

from __future__ import annotations

from benchmarks.tuner.model_quality import FAMILIES
from benchmarks.tuner.recorded_workloads import BY_NAME, RECORDINGS, Recording
from compiler.ops.spec import parse_spec
from tuner.replay.packaged import FOLDER
from tuner.replay.recorded_set import SUFFIX


def test_a_name_has_the_extents_the_options_and_the_type() -> None:
    assert Recording("matmul", "matmul:64,32,16").name == "matmul_64x32x16"
    named = Recording("dense", "dense:4,8,16,bias=true,constant=W+bias:bfloat16", cpu="znver4")
    assert named.name == "dense_4x8x16_bias-true_constant-W+bias_bfloat16_znver4"


def test_names_are_unique_and_operators_exist() -> None:
    assert len(BY_NAME) == len(RECORDINGS)
    for recording in RECORDINGS:
        assert parse_spec(recording.spec).name == recording.operator


def test_each_recorded_operator_is_of_one_family() -> None:
    members = " ".join(FAMILIES.values()).split()
    assert sorted(set(members)) == sorted(members)
    assert {recording.operator for recording in RECORDINGS} <= set(members)


def test_each_packaged_set_can_be_recorded_again() -> None:
    files = {path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}")}
    assert files <= BY_NAME.keys()


def test_sets_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.xz")) < 3_000_000

"""Manifests: combinations of values, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import loopwright as lw
from loopwright.errors import ManifestError
from loopwright.prefetching.manifest import read_manifest


def write(folder: Path, text: str) -> Path:
    path = folder / "kernels.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_values_make_all_combinations_in_their_order_and_each_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '[[kernels]]\nworkload = "matmul:{m},{n},8"\nm = [1, 16]\nn = [4, 8]\n'
        '[[kernels]]\nworkload = "matmul:1,4,8"\n'
        '[[kernels]]\nworkload = "relu:8"\ntarget = "cpu -num-cores=1"\n',
    )
    assert [(wanted.workload, wanted.target) for wanted in read_manifest(path)] == [
        ("matmul:1,4,8", "cpu"),
        ("matmul:1,8,8", "cpu"),
        ("matmul:16,4,8", "cpu"),
        ("matmul:16,8,8", "cpu"),
        ("relu:8", "cpu -num-cores=1"),
    ]


def test_a_script_lies_beside_the_manifest(tmp_path: Path) -> None:
    func = lw.ops.from_spec("relu:8:float32")
    (tmp_path / "relu.script").write_text(func.script(), encoding="utf-8")
    (wanted,) = read_manifest(write(tmp_path, '[[kernels]]\nworkload = "relu.script"\n'))
    assert lw.structural_equal(wanted.func, func)
    assert wanted.query is wanted.func


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected at least one"),
        ("kernels = 3", "expected at least one"),
        ("kernels = [3]", "expected at least one"),
        ("[[kernels", "is no TOML file"),
        ("[[kernels]]\nworkloads = 'relu:8'", "kernel 1: workload is None: expected a text"),
        (
            "[[kernels]]\nworkload = 'relu:8'\nrows = [1]",
            "an unknown field 'rows': expected target",
        ),
        ("[[kernels]]\nworkload = 'relu:{n}'", r"n is None: expected a list of values for \{n\}"),
        ("[[kernels]]\nworkload = 'relu:{n}'\nn = [1.5]", r"n is \[1.5\]: expected a list"),
        ("[[kernels]]\nworkload = 'relu:{n}'\nn = []", r"n is \[\]: expected a list"),
        ("[[kernels]]\nworkload = 'rela:8'", "rela"),
        ("[[kernels]]\nworkload = 'none.script'", "the script none.script cannot be read"),
        ("[[kernels]]\nworkload = 'relu:{n.__class__}'\n", "relu"),
        ("targets = 'cpu'\n[[kernels]]\nworkload = 'relu:8'", "an unknown field 'targets'"),
    ],
)
def test_what_is_wrong_in_a_manifest_is_named(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=f"the manifest .*{reason}"):
        read_manifest(write(tmp_path, text))


def test_a_product_of_long_lists_is_refused_at_once(tmp_path: Path) -> None:
    numbers = list(range(1, 2000))
    text = f"[[kernels]]\nworkload = 'matmul:{{a}},{{b}},{{c}}'\na = {numbers}\nb = {numbers}\n"
    with pytest.raises(ManifestError, match="it has more than 10000 kernels"):
        read_manifest(write(tmp_path, f"{text}c = {numbers}\n"))


def test_a_missing_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot be read: No such file"):
        read_manifest(tmp_path / "none.toml")

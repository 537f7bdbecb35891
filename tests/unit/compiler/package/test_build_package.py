"""Packages on disk: the same in a file and in a folder, with aligned weights, in equal bytes."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from compiler.executor.cpu_flags import cpu_flags
from compiler.executor.executor import Executor
from compiler.executor.machine import cpu_flags as flags_of_this_machine
from compiler.executor.package import read_package
from compiler.package.build_package import build_package, save_folder, save_package
from compiler.package.plan import ALIGNMENT
from compiler.target.cpus import CPUS
from compiler.target.host import reported_cpu
from tests.model_plans import classifier
from tests.targets import here, level


def test_a_package_computes_the_same_from_memory_a_file_and_a_folder(tmp_path: Path) -> None:
    plan, result = classifier()
    package = build_package(plan)
    save_package(package, tmp_path / "model.lwm")
    save_folder(package, tmp_path / "folder")
    inputs = {"image": np.random.default_rng(0).random((1, 784), "float32")}
    for again in (package, *map(read_package, (tmp_path / "model.lwm", tmp_path / "folder"))):
        assert again.manifest == package.manifest
        output = Executor(again).run(inputs)["probabilities"]
        np.testing.assert_allclose(output, result.reference(inputs), rtol=1e-5, atol=1e-6)


def test_equal_plans_give_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        save_package(build_package(classifier(level(3))[0]), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_file_has_no_compression_and_aligned_parts(tmp_path: Path) -> None:
    package = build_package(classifier(level(3))[0])
    save_package(package, tmp_path / "model.lwm")
    content = (tmp_path / "model.lwm").read_bytes()
    with zipfile.ZipFile(tmp_path / "model.lwm") as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == "manifest.json"
        assert archive.namelist()[-1] == "weights.bin"
    for part in package.files.values():
        assert content.index(bytes(part)) % ALIGNMENT == 0


def test_a_manifest_reports_kernels_and_steps() -> None:
    manifest = build_package(classifier(level(3))[0]).manifest
    assert manifest["target"] == "cpu -mcpu=x86-64-v3 -num-cores=1"
    assert manifest["inputs"] == [{"name": "image", "shape": [1, 784], "dtype": "float32"}]
    assert [step["kernel"] for step in manifest["steps"]] == ["k0", "k1", "k2"]
    assert manifest["kernels"][0]["run_secs"] is None


@pytest.mark.skipif(bool(reported_cpu()), reason="the host is reported as another CPU")
def test_this_machine_has_the_flags_of_its_own_target() -> None:
    assert set(cpu_flags(here().features, here().arch)) <= flags_of_this_machine()


@pytest.mark.parametrize("name", CPUS)
def test_each_feature_of_a_known_cpu_has_a_flag(name: str) -> None:
    without_instructions = {"+xsave"}  # of use to an operating system alone
    features = set(CPUS[name].features.split(",")) - without_instructions
    assert len(cpu_flags(",".join(features), CPUS[name].arch)) == len(features)

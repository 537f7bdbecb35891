"""The wheel loopwright-runtime, in an environment with NumPy and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from compiler import ops
from compiler.driver import build
from compiler.package.build_package import build_package, save_package
from tests.model_plans import classifier, parallel_plan

ROOT = Path(__file__).parents[4]
BUILD = "from setuptools import build_meta; build_meta.build_wheel('..')"
RUN = """
import json, os, sys
import numpy as np
import loopwright_runtime
import loopwright_runtime.c_files.export
assert all(getattr(loopwright_runtime, name) for name in loopwright_runtime.__all__)
image = np.load("image.npy")
result = loopwright_runtime.load("mnist.lwm").run({"image": image})["probabilities"]
parallel = loopwright_runtime.load("parallel.lwm", num_threads=2)
a = np.arange(512 * 512, dtype="float32").reshape(512, 512)
assert (parallel.run([a, a])["y"] == 2 * a).all()
child = os.fork()
if child == 0:  # its pool is empty
    os._exit(0 if (parallel.run([a, a])["y"] == 2 * a).all() else 1)
assert os.waitpid(child, 0)[1] == 0
product = np.empty((4, 5), "float32")
loopwright_runtime.load_kernel("matmul.lwk")(a[:4, :6].copy(), a[:6, :5].copy(), product)
assert (product == a[:4, :6] @ a[:6, :5]).all()
try:
    loopwright_runtime.load("image.npy")
except loopwright_runtime.PackageError as error:
    message = str(error)
foreign = {"compiler", "llvmlite", "loopwright", "ml_dtypes"} & set(sys.modules)
print(json.dumps([result[0].tolist(), message, sorted(foreign)]))
"""


def _run(folder: Path, *command: str | Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if int(version("setuptools").split(".")[0]) < 77:
        pytest.skip("setuptools is older than 77: install the extra dev again")
    folder = tmp_path_factory.mktemp("source")
    for name in ("runtime", "compiler/executor"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    _run(folder / "runtime", sys.executable, "-c", BUILD)
    return next(folder.glob("*.whl"))


def test_a_model_runs_without_a_compiler(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    (packages,) = (tmp_path / "venv").glob("lib/python3*/site-packages")
    for part in Path(np.__file__).parents[1].glob("numpy*"):
        (packages / part.name).symlink_to(part)
    zipfile.ZipFile(wheel).extractall(packages)
    plan, result = classifier()
    image = np.random.default_rng(0).random((1, 784), "float32")
    np.save(tmp_path / "image.npy", image)
    save_package(build_package(plan), tmp_path / "mnist.lwm")
    save_package(build_package(parallel_plan(2)[0]), tmp_path / "parallel.lwm")
    build(ops.matmul(4, 5, 6), "cpu -num-cores=1").save(tmp_path / "matmul.lwk")
    output = _run(tmp_path, tmp_path / "venv" / "bin" / "python", "-I", "-c", RUN)
    probabilities, message, foreign = json.loads(output)
    expected = result.reference({"image": image})[0]
    np.testing.assert_allclose(probabilities, expected, rtol=1e-4, atol=1e-6)
    assert "image.npy is not a package of a model" in message
    assert foreign == []


def test_the_wheel_has_all_modules_and_the_version_of_loopwright(wheel: Path) -> None:
    names = {Path(name).name for name in zipfile.ZipFile(wheel).namelist()}
    assert names >= {path.name for path in (ROOT / "compiler" / "executor").glob("*.py")}
    versions = [
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]["version"]
        for folder in (".", "runtime")
    ]
    assert versions[0] == versions[1]
    assert wheel.name == f"loopwright_runtime-{versions[0]}-py3-none-any.whl"

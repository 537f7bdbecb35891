"""Schedules inside a Python package, as its author and its users have them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from examples.serving import free_port
from loopwright.locks.lock_file import LockFile
from tests.unit.loopwright.locks.made import locked

PAGE = Path(__file__).parents[2] / "docs" / "locks.md"
USE = """
import numpy as np, mypackage, loopwright as lw
kernel = mypackage.matmul()
assert kernel.source is lw.KernelSource.LOCK, kernel.source
a, b = np.random.default_rng(0).random((2, 64, 64), "float32")
c = np.empty((64, 64), "float32")
kernel(a, b, c)
np.testing.assert_allclose(c, a.astype("float64") @ b, rtol=1e-4)
print(mypackage.__file__)
"""


def pip(*args: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *args]
    subprocess.run(command, check=True, timeout=120)


def test_a_wheel_with_a_lock_file_has_its_kernel_in_a_new_process(tmp_path: Path) -> None:
    section = PAGE.read_text(encoding="utf-8").split("## Inside a Python package")[1]
    project, module = re.findall(r"```(?:toml)?\n(.*?)```", section, re.DOTALL)[:2]
    source = tmp_path / "source"
    (source / "mypackage").mkdir(parents=True)
    (source / "pyproject.toml").write_text(project, encoding="utf-8")
    (source / "mypackage" / "__init__.py").write_text(module, encoding="utf-8")
    LockFile([locked("matmul:64,64,64")]).save(source / "mypackage" / "loopwright.lock")

    pip(
        "wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(source)
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert "mypackage/loopwright.lock" in zipfile.ZipFile(wheel).namelist()
    target = tmp_path / "target"
    pip("install", "--no-index", "--no-deps", "--target", str(target), str(wheel))

    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", USE],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(target),
            "LOOPWRIGHT_URL": f"http://127.0.0.1:{free_port()}",  # no server is there
            "LOOPWRIGHT_CACHE": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert Path(ran.stdout.strip()).parent == target / "mypackage"

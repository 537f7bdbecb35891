"""`loopwright prefetch`: exit codes and output, with a real server."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from examples.serving import Server
from tests.public.cli.commands import OPERATOR, TARGET, run

PAGE = (Path(__file__).parents[3] / "docs" / "locks.md").read_text(encoding="utf-8")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOOPWRIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "kernels.toml"


def test_the_exit_code_says_whether_all_kernels_are_tuned(
    server: Server, job: str, path: Path
) -> None:
    tuned = f'target = "{TARGET}"\n[[kernels]]\nworkload = "{OPERATOR}"\n'
    path.write_text(tuned, encoding="utf-8")
    ran = run("prefetch", str(path), server=server)
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout == f"best     {OPERATOR} for {TARGET}\n1 of 1 kernels are tuned\n"
    path.write_text(f'{tuned}[[kernels]]\nworkload = "relu:54321"\n', encoding="utf-8")
    ran = run("prefetch", str(path), "--json", server=server)
    assert ran.exit_code == 1
    answer = json.loads(ran.stdout)
    assert not answer["ready"]
    assert [kernel["schedule"] for kernel in answer["kernels"]] == ["best", "default"]
    assert "no schedule of workload" in answer["kernels"][1]["problem"]


def test_an_invalid_manifest_is_exit_code_2(path: Path) -> None:
    path.write_text("[[kernels]]\n", encoding="utf-8")
    ran = run("prefetch", str(path))
    assert ran.exit_code == 2
    assert "workload is None: expected a text" in ran.stderr


def test_the_manifest_of_the_page_is_read(path: Path) -> None:
    (example,) = re.findall(r"```toml\n(target = .*?)```", PAGE, re.DOTALL)
    path.write_text(example, encoding="utf-8")
    ran = run("prefetch", str(path), "--lock", str(path.with_name("none.lock")), "--json")
    assert ran.exit_code == 1
    kernels = json.loads(ran.stdout)["kernels"]
    assert [kernel["workload"] for kernel in kernels] == [
        "matmul:16,64,64",
        "matmul:64,64,64",
        "softmax:64,64",
    ]
    assert all("there is no lock file" in kernel["problem"] for kernel in kernels)

"""What the documents and the examples say is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import TensorProto, helper, save_model

from compiler.ir.core.program import PrimFunc
from examples.serving import Server, free_port
from tests.unit.compiler.ops.records import PAGE, table

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def run(
    *command: str, cwd: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


def test_the_program_of_the_readme_runs(tmp_path: Path) -> None:
    ran = run("-c", PROGRAMS[0], cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    times, words = ran.stdout.split(maxsplit=1)
    assert float(times) >= 1
    assert words.startswith("times as fast as the default schedule")


def save_pool(path: Path, shape: list[str | int]) -> None:
    """Write a model of a pool and a softmax, which takes an image."""
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)
    pooled = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, None)
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["means"]),
        helper.make_node("Softmax", ["means"], ["probabilities"], axis=1),
    ]
    save_model(helper.make_model(helper.make_graph(nodes, "pool", [image], [pooled])), path)


def test_the_program_of_the_readme_for_a_model_runs(tmp_path: Path) -> None:
    save_pool(tmp_path / "model.onnx", ["n", 3, "height", "width"])
    given = "import numpy as np\nimage = np.ones((1, 3, 224, 224), 'float32')\n"
    checked = "assert np.allclose(probabilities, 1 / 3)\n"
    ran = run("-c", given + PROGRAMS[1] + checked, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "model.lwm").exists()


def test_the_program_of_the_readme_for_a_server_runs(server: Server, tmp_path: Path) -> None:
    first, second = PROGRAMS[0].split("result =")[0], PROGRAMS[2]
    program = first + second.replace("http://127.0.0.1:8080", server.url).replace("=200", "=8")
    ran = run("-c", program, cwd=tmp_path, environment={"LOOPWRIGHT_CACHE": str(tmp_path)})
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("path", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_a_link_of_the_readme_leads_somewhere(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_commands_of_the_readme_are_commands_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = set(re.findall(r"^make ([a-z]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= commands
    assert all(re.search(rf"^{name}:", makefile, re.MULTILINE) for name in commands)


@pytest.mark.parametrize(
    ("name", "args"), [("hand_schedule.py", ()), ("tune_here.py", ("matmul:32,32,32", "8"))]
)
def test_an_example_runs(name: str, args: tuple[str, ...], tmp_path: Path) -> None:
    ran = run(str(ROOT / "examples" / name), *args, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_the_quick_start_runs_against_a_server(server: Server, tmp_path: Path) -> None:
    text = (ROOT / "examples" / "quick_start.py").read_text(encoding="utf-8")
    program = text.replace("512", "64").replace("trials=100", "trials=8")
    environment = {"LOOPWRIGHT_URL": server.url, "LOOPWRIGHT_CACHE": str(tmp_path)}
    ran = run("-c", program, cwd=tmp_path, environment=environment)
    assert ran.returncode == 0, ran.stderr
    assert "times as fast" in ran.stdout


def test_the_quick_start_without_a_server_says_what_to_do(tmp_path: Path) -> None:
    program = str(ROOT / "examples" / "quick_start.py")
    environment = {"LOOPWRIGHT_URL": f"http://127.0.0.1:{free_port()}"}
    ran = run(program, cwd=tmp_path, environment=environment)
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert "loopwright serve" in ran.stderr


def test_the_programs_of_the_page_on_lock_files_run_one_after_the_other(tmp_path: Path) -> None:
    save_pool(tmp_path / "model.onnx", [1, 3, 8, 8])
    page = (ROOT / "docs" / "locks.md").read_text(encoding="utf-8")
    for program in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        ran = run("-c", program, cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr


def test_the_list_of_operators_is_that_of_the_library() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.endswith(table()), "run python -m tests.unit.compiler.ops.records"
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(code) == 2
    names: dict[str, object] = {}
    for program in code:
        exec(program, names)
    assert isinstance(names["program"], PrimFunc)

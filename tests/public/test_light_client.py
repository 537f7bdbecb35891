"""A client without the extra `server`: what it can do, and what it says of the rest.

The packages of the extra are made unimportable in a Python of its own, which then talks to a real
server of the complete installation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from examples.serving import Server
from loopwright.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]

# A finder before all others, so that an installed package is refused as if it were missing.
REFUSE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""

TUNE = """
import sys
from pathlib import Path
import numpy as np
import loopwright as lw
url, folder = sys.argv[1:]
with lw.Client(url, cache=Path(folder)) as client:
    handle = client.tune("matmul:32,32,32:float32", max_trials=4, seed=1)
    events = [event.kind for event in handle.events()]
    job = handle.wait()
    assert job.num_measured == 4, job
    assert "trials" in events, events
    assert [trial.number for trial in handle.trials()] == [0, 1, 2, 3]
    best = client.best("matmul:32,32,32:float32")
    assert best.record.job_id == job.id, best
    kernel = client.kernel("matmul:32,32,32:float32")
    a, b = (np.random.default_rng(i).random((32, 32), dtype=np.float32) for i in (0, 1))
    c = np.zeros((32, 32), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    print(kernel.source)
"""


RUN_ALL = """
import json
from typer.testing import CliRunner
from loopwright.cli.main import app
ran = [CliRunner().invoke(app, command) for command in commands]
print(json.dumps([(result.exit_code, result.stderr) for result in ran]))
"""


def required_by(requirements: list[str]) -> set[str]:
    """Return the names of all distributions that these need, themselves included."""
    names: set[str] = set()
    pending = [Requirement(text) for text in requirements]
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if not applies or name in names:
            continue
        names.add(name)
        try:
            pending += [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError:
            pytest.fail(f"{name} is not installed")
    return names


@cache
def refused_packages() -> set[str]:
    """Return what `import` calls the packages that only the extra `server` installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = required_by(project["optional-dependencies"]["server"])
    missing = extra - required_by(project["dependencies"])
    packages = {
        package
        for package, distributions in packages_distributions().items()
        if {canonicalize_name(name) for name in distributions} & missing
    }
    assert {"fastapi", "xgboost", "sqlalchemy", "distributed", "starlette", "dask"} <= packages
    assert not packages & {"numpy", "pydantic", "httpx2", "rich", "typer"}
    return packages


def light_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python that has only what `pip install loopwright` installs."""
    program = f"REFUSED = {sorted(refused_packages())!r}\n{REFUSE}\n{code}"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
    )


def light_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command `loopwright` in such a Python."""
    run = f"sys.argv[1:] = {list(arguments)!r}\nfrom loopwright_start import main\nmain()"
    return light_python(run)


def test_the_refused_packages_cannot_be_imported() -> None:
    ran = light_python("import xgboost")
    assert ran.returncode == 1
    assert "No module named 'xgboost'" in ran.stderr


def test_a_client_submits_follows_reads_and_runs_a_kernel(server: Server, tmp_path: Path) -> None:
    ran = light_python(TUNE, server.url, str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "server\n"


def test_the_commands_of_a_client_work(server: Server, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.lwk"
    operator = "matmul:16,16,16:float32"
    tuned = light_command(
        "tune", operator, "--max-trials", "3", "--url", server.url, "-o", str(kernel)
    )
    assert tuned.returncode == 0, tuned.stderr
    assert kernel.stat().st_size > 0
    records = str(tmp_path / "records.jsonl")
    for arguments in (
        ["jobs"],
        ["best", operator],
        ["workers"],
        ["export", records],
        ["import", records],
    ):
        ran = light_command(*arguments, "--url", server.url)
        assert ran.returncode == 0, ran.stderr


COMMANDS_OF_THE_SERVER = (
    ("serve",),
    ("serve", "--port", "0", "--workers", "2"),
    ("api",),
    ("coordinator", "tls://127.0.0.1:9"),
    ("scheduler",),
    ("worker", "tls://127.0.0.1:9"),
    ("train",),
    ("token", "list"),
    ("export", "records.jsonl", "--db", "sqlite:///none.db"),
    ("import", "pyproject.toml", "--db", "sqlite:///none.db"),
    ("compile", "pyproject.toml"),
    ("profile", "pyproject.toml"),
)


@pytest.fixture(scope="module")
def refusals() -> list[tuple[int, str]]:
    """Run all these commands in one such Python; return their exit codes and errors."""
    run = f"commands = {COMMANDS_OF_THE_SERVER!r}\n{RUN_ALL}"
    ran = light_python(run)
    assert ran.returncode == 0, ran.stderr
    return [(code, text) for code, text in json.loads(ran.stdout)]


@pytest.mark.parametrize(
    "number", range(len(COMMANDS_OF_THE_SERVER)), ids=map(" ".join, COMMANDS_OF_THE_SERVER)
)
def test_a_command_of_the_server_names_the_extra_in_one_line(
    refusals: list[tuple[int, str]], number: int
) -> None:
    exit_code, error = refusals[number]
    assert exit_code == 1
    (line,) = error.splitlines()
    assert line.startswith(f"error: loopwright {COMMANDS_OF_THE_SERVER[number][0]}")
    assert line.endswith("which is not installed: pip install 'loopwright[server]'")


def test_tuning_in_this_process_names_the_extra(no_server: str) -> None:
    # The address at which no server answers is set in that Python, not here.
    quiet = f"from loopwright.cli.shared import where\nwhere.DEFAULT_URL = {no_server!r}\n"
    tune = "sys.argv[1:] = ['tune', 'matmul:8,8,8:float32']\nfrom loopwright_start import main\n"
    ran = light_python(f"{quiet}{tune}main()")
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: loopwright tune without a server needs ")
    assert ran.stderr.endswith("pip install 'loopwright[server]'\n")
    assert len(ran.stderr.splitlines()) == 1


def test_the_help_lists_every_command_and_names_the_extra() -> None:
    ran = light_command("--help")
    assert ran.returncode == 0, ran.stderr
    assert all(command in ran.stdout for command in COMMANDS)
    assert "pip install 'loopwright[server]'" in " ".join(ran.stdout.split())


def test_lw_tune_names_the_extra() -> None:
    ran = light_python("import loopwright as lw\nlw.tune")
    assert ran.returncode == 1
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("loopwright.extras.MissingExtraError: lw.tune needs ")
    assert last.endswith("which is not installed: pip install 'loopwright[server]'")


def test_a_program_is_built_and_its_design_space_is_read() -> None:
    ran = light_python(
        "import loopwright as lw\n"
        "func = lw.ops.matmul(8, 8, 8)\n"
        "lw.build(func, 'cpu')\n"
        "print(len(lw.design_space(func, 'cpu').sketches))\n"
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 0

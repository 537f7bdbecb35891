"""`loopwright tune --range` writes one artifact for all sizes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from examples.serving import Server
from tests.public.cli.commands import TARGET, run

ROW_SUM = """
@T.prim_func
def row_sum(x: T.Buffer(("M", 16), "float32"), y: T.Buffer(("M",), "float32")):
    for i, k in T.grid(M, 16):
        with T.sblock("y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] = y[vi] + x[vi, vk]
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "row_sum.py"
    path.write_text(ROW_SUM)
    return str(path)


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.usefixtures("no_server")
def test_one_artifact_runs_all_sizes_of_a_range(
    script: str, tmp_path: Path, server: Server, is_there: bool
) -> None:
    path = tmp_path / "row_sum.lwk"
    at = ("--url", server.url) if is_there else ()
    options = ("--target", TARGET, "--range", "M=1:2", "--max-trials", "16", *at)
    ran = run("tune", script, *options, "-o", str(path), "--json")
    assert ran.exit_code == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert [time["sizes"] for time in found["times"]] == [{"M": 1}, {"M": 2}]
    assert lw.parse_module(found["module"])["row_sum"].script() == found["dispatcher"]
    assert {time["kernel"] for time in found["times"]} == set(range(len(found["kernels"])))
    kernel = lw.load_kernel(path)
    for rows in (1, 2):
        x, y = np.ones((rows, 16), "float32"), np.zeros(rows, "float32")
        kernel(x, y)
        assert (y == 16).all()
    with pytest.raises(lw.ShapeError, match="row_sum takes M from 1 to 2"):
        kernel(np.ones((3, 16), "float32"), np.zeros(3, "float32"))
    if is_there:
        with lw.Client(server.url) as client:
            search = client.shapes(found["shapes"])
            assert search.read().dispatcher == found["dispatcher"]
            y = np.zeros(2, "float32")
            search.kernel()(np.ones((2, 16), "float32"), y)
            assert (y == 16).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--range", "M"), "such as M=1:512"),
        (("--range", "M=1:2", "--range", "M=1:4"), "M already has a range"),
        (("--range", "N=1:2"), "row_sum has no symbolic extent N: it has M"),
        (("--range", "M=0:2"), "M runs from 0 to 2"),
        (("matmul:8,8,8", "--range", "M=1:2"), "--range accepts one workload"),
        (("--range", "M=1:2", "--name", "mine"), "require a server"),
        (("--url", "http://127.0.0.1:9"), "or tune all sizes with --range M=1:512"),
    ],
)
@pytest.mark.usefixtures("no_server")
def test_what_does_not_fit_is_refused(script: str, options: tuple[str, ...], message: str) -> None:
    ran = run("tune", script, *options)
    assert ran.exit_code == 2
    assert message in " ".join(ran.stderr.split())

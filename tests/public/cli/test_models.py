"""`loopwright compile`, `run`, `profile` and `inspect` of a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw
from tests.public.cli.commands import run

TARGET = ("--target", "cpu -num-cores=1")
SHAPE = ("--shape", "x=2x16")
RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(-0.2, 0.2, (16, 8)).astype(np.float32)
X = RNG.uniform(-1, 1, (2, 16)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, arrays, and the compiled model."""
    folder = tmp_path_factory.mktemp("models")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], name="dense"),
        helper.make_node("Relu", ["y"], ["z"], name="relu"),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 16])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["batch", 8])],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "tiny.onnx")
    np.save(folder / "x.npy", X)
    np.save(folder / "double.npy", X.astype(np.float64))
    compiled = run(
        "compile", f"{folder}/tiny.onnx", *SHAPE, *TARGET, "-o", f"{folder}/tiny.lwm", "--json"
    )
    assert compiled.exit_code == 0, compiled.output
    answer = json.loads(compiled.stdout)
    assert answer["comparison"] is None
    assert [kernel["operators"] for kernel in answer["inspection"]["kernels"]] == ["matmul+relu"]
    return folder


def test_a_compiled_model_runs_on_files(folder: Path) -> None:
    ran = run(
        *("run", f"{folder}/tiny.lwm", "--input", f"x={folder}/x.npy"),
        *("--output", f"z={folder}/z.npy", "--json"),
    )
    assert ran.exit_code == 0, ran.output
    expected = np.maximum(X @ WEIGHTS, 0)
    np.testing.assert_allclose(np.load(folder / "z.npy"), expected, atol=1e-5)
    assert json.loads(ran.stdout)["z"]["shape"] == [2, 8]
    np.testing.assert_allclose(lw.load(folder / "tiny.lwm").run([X])["z"], expected, atol=1e-5)


def test_results_are_shown(folder: Path) -> None:
    ran = run("run", f"{folder}/tiny.lwm", "--input", f"x={folder}/x.npy")
    assert "float32[2, 8]: " in ran.stdout


def test_a_profile_has_rates(folder: Path) -> None:
    command = ("profile", f"{folder}/tiny.onnx", *SHAPE, *TARGET)
    [step] = json.loads(run(*command, "--json").stdout)["steps"]
    assert step["flops"] == 2 * 2 * 16 * 8 + 2 * 8
    assert "GFLOP/s" in run(*command, "--input", f"x={folder}/x.npy").stdout


def test_a_package_has_the_time_of_a_run(folder: Path) -> None:
    given = ("--input", f"x={folder}/x.npy")
    assert json.loads(run("profile", f"{folder}/tiny.lwm", *given, "--json").stdout)["total_secs"]
    shown = run("profile", f"{folder}/tiny.lwm").stdout
    assert "a run, the shortest" in shown
    assert "1 calls; profile the .onnx file" in shown


def test_models_and_packages_are_inspected(folder: Path) -> None:
    model = run("inspect", f"{folder}/tiny.onnx", *SHAPE, *TARGET)
    assert "matmul+relu" in model.stdout
    package = run("inspect", f"{folder}/tiny.lwm")
    assert "x: float32[2, 16]" in package.stdout
    assert json.loads(run("inspect", f"{folder}/tiny.lwm", "--json").stdout)["name"] == "tiny"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("compile {}/tiny.onnx", r"(batch, 16), which is known only when it runs"),
        ("compile {}/tiny.onnx", "here: --shape NAME=1x3x224x224"),
        ("compile {}/tiny.onnx --shape x=2xx", "expected extents such as 1x3x224x224"),
        ("compile {}/tiny.onnx --shape 2x16", "expected NAME=SHAPE"),
        ("compile {}/tiny.onnx --shape x=2x16 --shape x=3x16", "x is repeated"),
        ("compile {}/tiny.onnx --shape y=2x16", "the model has no input 'y'"),
        ("compile {}/tiny.onnx --trials -1", "--trials -1: expected a number from 0 to"),
        ("compile {}/tiny.onnx --trials many", "or auto"),
        ("compile {}/tiny.onnx --target frob", "unknown target kind 'frob'"),
        ("compile {}/tiny.onnx -o {}/no/such.lwm", "the folder does not exist"),
        ("compile {}/tiny.onnx -o {}", "it is a folder"),
        ("compile {}/other.onnx", "there is no file"),
        ("compile {}/x.npy", "not a model in the format of ONNX"),
        ("run {}/tiny.lwm", "missing input 'x': the inputs are x"),
        (
            "run {}/tiny.lwm --input x={}/double.npy",
            "parameter x is float64[2, 16]: expected float32",
        ),
        ("run {}/tiny.lwm --input x={}/tiny.onnx", "it is not a .npy file of numbers"),
        ("run {}/tiny.lwm --input x={}/x.npy --output y={}/y.npy", "the results are z"),
        ("run {}/tiny.onnx", "is not compiled: loopwright compile"),
        ("run {}/x.npy", "is not a package of a model"),
        ("run {}/other.lwm", "cannot be read: No such file"),
        ("profile {}/tiny.lwm --trials 16", "is compiled: --shape, --fix and --trials"),
        ("profile {}/tiny.lwm --input y={}/x.npy", "unknown input 'y'"),
        ("inspect {}/tiny.onnx --source", "require a program"),
        ("inspect matmul:8,8,8 --shape x=2x16", "require a .onnx model"),
    ],
)
def test_mistakes_are_explained(folder: Path, command: str, words: str) -> None:
    ran = run(*command.replace("{}", str(folder)).split())
    assert (ran.exit_code, words in " ".join(ran.stderr.split())) == (2, True), ran.output


def test_a_compile_on_a_server_that_is_not_there_has_its_own_exit_code(folder: Path) -> None:
    ran = run("compile", f"{folder}/tiny.onnx", *SHAPE, "--url", "http://127.0.0.1:9")
    assert ran.exit_code == 3, ran.output


@pytest.mark.usefixtures("no_server")
def test_an_interrupted_search_can_be_continued(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("loopwright.models.compiling.compile", interrupted)
    ran = run("compile", f"{folder}/tiny.onnx", *SHAPE, *TARGET, "--trials", "auto")
    assert ran.exit_code == 130
    assert "each measurement is stored in" in ran.stderr
    assert "the same command continues from the trials so far" in ran.stderr


def test_a_model_is_compiled_again_from_its_lock_file(folder: Path, tmp_path: Path) -> None:
    lock = tmp_path / "a.lock"
    command = ("compile", f"{folder}/tiny.onnx", *SHAPE, *TARGET, "-o", f"{tmp_path}/tiny.lwm")
    assert run(*command, "--save-lock", str(lock)).exit_code == 0
    locked = run(*command, "--lock", str(lock), "--json")
    assert locked.exit_code == 0, locked.output
    (kernel,) = json.loads(locked.stdout)["inspection"]["kernels"]
    assert kernel["sketch"] == "locked"
    np.testing.assert_allclose(
        lw.load(tmp_path / "tiny.lwm").run([X])["z"], np.maximum(X @ WEIGHTS, 0), atol=1e-5
    )
    for wrong, reason in (
        (("--lock", str(lock), "--trials", "32"), "exclude each other"),
        (("--lock", f"{tmp_path}/none.lock"), "there is no lock file"),
        (("--save-lock", f"{tmp_path}/none/a.lock"), "cannot be written: No such file"),
    ):
        ran = run(*command, *wrong)
        assert ran.exit_code == 2
        assert reason in ran.stderr

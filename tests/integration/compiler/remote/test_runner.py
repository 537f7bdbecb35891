"""Kernels on devices without Python, by `loopwright-runner`: here, and for other CPUs in QEMU."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from compiler.schedule.schedule import Schedule
from compiler.target.host import host_features
from loopwright import rpc
from tests.integration.compiler.remote.runners import runner_for, runner_here
from tests.targets import here

RNG = np.random.default_rng(0)
EMULATED = ["cortex-a53", "cortex-a9", "spacemit-x60"]


@pytest.mark.parametrize("cpu", ["x86-64", *EMULATED])
def test_kernels_run_on_each_architecture(cpu: str) -> None:
    command, target = runner_for(cpu)
    with rpc.connect(command) as remote:
        assert remote.facts.arch == target.arch
        assert remote.is_emulated == (cpu in EMULATED)
        _check_product(remote, target)
        _check_constants(remote, target)
        _check_threads(remote, target)


def _check_product(remote: rpc.Remote, target: lw.Target) -> None:
    a, b = (RNG.random(shape, "float32") for shape in ((33, 17), (17, 20)))
    product = remote.load_module(lw.compile_kernel(lw.ops.matmul(33, 20, 17), target))
    result = remote.empty((33, 20))
    product(remote.array(a), remote.array(b), result)
    np.testing.assert_allclose(result.numpy(), a @ b, rtol=1e-5)


def _check_constants(remote: rpc.Remote, target: lw.Target) -> None:
    schedule = Schedule(lw.ops.dense(4, 48, 64, constant="W"))
    j0, _ = schedule.split(schedule.get_loops("C")[1], [None, 8])
    schedule.reorder(j0, schedule.get_loops("C")[0])
    schedule.annotate(schedule.cache_read("C", 1, "global"), "buffer_tile", [8, 1])
    x, w = (RNG.random(shape, "float32") for shape in ((4, 64), (48, 64)))
    dense = remote.load_module(lw.compile_kernel(schedule, target), {"W": w})
    result = remote.empty((4, 48))
    dense(remote.array(x), result)
    np.testing.assert_allclose(result.numpy(), x @ w.T, rtol=1e-5)


def _check_threads(remote: rpc.Remote, target: lw.Target) -> None:
    schedule = Schedule(lw.ops.exp(512, 300, dtype="float64"))
    (block,) = schedule.get_child_blocks(schedule.get_block("root"))
    schedule.parallel(schedule.get_loops(block)[0])
    options = target.name.replace("-num-cores=1", "-num-cores=4")
    exponential = remote.load_module(lw.compile_kernel(schedule, options))
    assert exponential.num_threads == min(4, remote.facts.num_cores)
    x = RNG.random((512, 300))
    result = remote.empty((512, 300), "float64")
    for _ in range(5):
        exponential(remote.array(x), result)
    np.testing.assert_allclose(result.numpy(), np.exp(x), rtol=1e-14)


def test_the_program_of_the_notes_runs(tmp_path: Path) -> None:
    # "Program Your Phone with Python from Your Laptop"
    kernel = lw.compile_kernel(lw.ops.add(1024), here())
    kernel.save(tmp_path / "myfunc.o")
    remote = rpc.connect(runner_here())
    remote.upload(tmp_path / "myfunc.o")
    f = remote.load_module("myfunc.o")
    ctx = remote.cpu(0)
    values = np.random.uniform(size=1024).astype("float32")
    a = lw.nd.array(values, ctx)
    b = lw.nd.array(np.zeros(1024, "float32"), ctx)
    c = lw.nd.empty((1024,), "float32", ctx)
    remote_timer = f.time_evaluator("add", ctx, number=10, repeat=3)
    time_cost = remote_timer(a, b, c)
    assert len(time_cost.results) == 3
    assert 0 < time_cost.mean < 1
    np.testing.assert_equal(c.asnumpy(), values)
    remote.close()


def test_an_emulated_device_reports_no_times_and_checks_results() -> None:
    with rpc.connect([*runner_here(), "--emulated"]) as remote:
        assert remote.is_emulated
        double = remote.load_module(lw.compile_kernel(lw.ops.add(16), here()))
        x, y = remote.array(np.ones(16, "float32")), remote.empty((16,))
        with pytest.raises(rpc.EmulatedDeviceError, match="its times say nothing"):
            double.time_evaluator()(x, remote.array(np.ones(16, "float32")), y)
        np.testing.assert_array_equal(y.numpy(), np.full(16, 2))


def test_an_emulator_of_another_name_is_known(tmp_path: Path) -> None:
    # Linux's binfmt_misc hides the name of the emulator too.
    command, _ = runner_for("cortex-a53")
    emulator = shutil.which(command[0])
    if emulator is None or len(command) == 1:
        pytest.skip("this host has no emulator for its own CPU")
    (tmp_path / "interpreter").symlink_to(emulator)
    with rpc.connect([str(tmp_path / "interpreter"), *command[1:]]) as remote:
        assert remote.is_emulated


def test_several_devices_work_at_once() -> None:
    kernel = lw.compile_kernel(lw.ops.relu(1000), here())
    remotes = [rpc.connect(runner_here()) for _ in range(3)]
    values = [RNG.standard_normal(1000).astype("float32") for _ in remotes]
    arrays = [(r.array(v), r.empty((1000,))) for r, v in zip(remotes, values, strict=True)]
    for remote, pair in zip(remotes, arrays, strict=True):
        remote.load_module(kernel)(*pair)
    for remote, value, (_, result) in zip(remotes, values, arrays, strict=True):
        np.testing.assert_array_equal(result.numpy(), np.maximum(value, 0))
        remote.close()


def test_what_does_not_fit_is_refused_and_costs_nothing() -> None:
    with rpc.connect(runner_here()) as remote, rpc.connect(runner_here()) as other:
        with pytest.raises(lw.ArtifactError, match="built for aarch64: the device is x86_64"):
            remote.load_module(lw.compile_kernel(lw.ops.relu(8), "cpu -mcpu=cortex-a53"))
        # Intel's servers have tile registers, and lack some instructions of its desktops.
        has_tiles = "+amx-tile" in host_features().split(",")
        cpu, flag = ("arrowlake", "avx_vnni_int8") if has_tiles else ("sapphirerapids", "amx_tile")
        with pytest.raises(lw.ArtifactError, match=f"built for a CPU with .*{flag}"):
            remote.upload(lw.compile_kernel(lw.ops.relu(8), f"cpu -mcpu={cpu}"))
        with pytest.raises(KeyError, match=r"'relu\.o' was not uploaded: nothing was"):
            remote.load_module("relu.o")
        relu = remote.load_module(lw.compile_kernel(lw.ops.relu(8), here()))
        x, y = remote.empty((8,)), remote.empty((8,))
        for wrong, message in (
            ((x,), "takes 2 arrays"),
            ((x, x), "is written, and passed twice"),
            ((x, remote.empty((9,))), r"B is float32\[9\]: expected float32\[8\]"),
            ((x, remote.empty((8,), "float64")), "B is float64"),
            ((np.zeros(8, "float32"), y), "expected an array of this device"),
            ((x, other.empty((8,))), "expected an array of this device"),
        ):
            with pytest.raises(lw.ArgumentError, match=message):
                relu(*wrong)
        with pytest.raises(lw.ArgumentError, match=r"takes no float64\[8\]"):
            x.copyfrom(np.zeros(8))
        for options, message in (
            ({"number": 0}, "number is 0"),
            ({"number": 2.5}, r"number is 2\.5"),
            ({"repeat": 1001}, "repeat is 1001"),
            ({"min_repeat_ms": -1}, "min_repeat_ms is -1"),
        ):
            with pytest.raises(ValueError, match=message):
                relu.time_evaluator(**options)
        for secs in (0, -1, 601, float("nan")):
            with pytest.raises(lw.ArgumentError, match=f"deadline_secs is {secs}: expected"):
                relu(x, y, deadline_secs=secs)
        with pytest.raises(lw.ArgumentError, match="an int is no kernel for a device"):
            remote.load_module(5)  # type: ignore[arg-type]
        relu(x, y)


def test_an_array_that_no_device_holds_is_refused() -> None:
    with rpc.connect(runner_here()) as remote:
        for shape, message in (
            ((-1,), "has a negative extent"),
            ((2.5,), "extents that are no integers"),
            ("ab", "extents that are no integers"),
        ):
            with pytest.raises(lw.ArgumentError, match=message):
                remote.empty(shape)  # type: ignore[arg-type]
        with pytest.raises(lw.ArgumentError, match="holds objects of Python"):
            remote.array(np.array([object()]))
        with pytest.raises(rpc.RemoteRefusedError, match="the array has 4835703278458516698824704"):
            remote.empty((1 << 40, 1 << 40))
        with pytest.raises(ValueError, match="unknown dtype"):
            remote.array(["text"])
        assert remote.array(5).numpy() == 5

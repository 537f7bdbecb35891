from pathlib import Path

import pytest

from compiler.backends.host_device import HostDevice
from compiler.target.cuda import CudaTarget
from workers.engine import host_workers as module
from workers.engine.cluster import run_workers
from workers.engine.engine import ClusterAddress, EngineStartError
from workers.engine.host_workers import host_workers

GPU = HostDevice(CudaTarget("cuda -gpu=h200"), "h200-0", uuid="GPU-0", variables={})


def test_a_host_may_offer_its_devices_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "host_devices", lambda: [GPU])
    assert [worker.name for worker in host_workers(0)] == ["h200-0"]
    assert [worker.name for worker in host_workers(2)] == ["0", "1", "h200-0"]


def test_a_host_without_any_worker_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "host_devices", list)
    with pytest.raises(EngineStartError, match="--workers of at least 1 on a host without GPUs"):
        run_workers(ClusterAddress("tls://a.example:8786", tmp_path), 0, print)

"""GPUs of the host: products are models of the table, and a host without a GPU has none."""

from __future__ import annotations

import pytest

from compiler.backends.cuda.runtime.host_gpus import (
    GpuState,
    HostGpu,
    driver_cuda_version,
    host_gpus,
    model_of,
    visible_gpus,
)
from compiler.target.gpus import GPUS


@pytest.mark.parametrize(
    ("product", "model"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"),
        ("NVIDIA GB2000", None),
        ("Tesla V100-SXM2-32GB", None),
    ],
)
def test_a_product_is_a_model_of_the_table(product: str, model: str | None) -> None:
    assert model_of(product) == model


def test_each_model_of_the_table_has_a_product() -> None:
    products = ("H200", "H100 HBM3", "H100 PCIe", "A100", "L40S", "B200", "RTX PRO 6000")
    assert {model_of(f"NVIDIA {product}") for product in products} == set(GPUS)


@pytest.mark.parametrize(
    ("product", "capability", "text"),
    [
        ("NVIDIA H200", (9, 0), "cuda -arch=sm_90a -gpu=h200"),
        ("NVIDIA A10", (8, 6), "cuda -arch=sm_86"),
        ("NVIDIA GH200 480GB", (9, 0), "cuda -arch=sm_90a"),
    ],
)
def test_a_gpu_has_a_target(product: str, capability: tuple[int, int], text: str) -> None:
    target = HostGpu(0, "GPU-0", product, capability).target
    assert target is not None
    assert target.name == text


def test_a_gpu_of_an_old_architecture_has_no_target() -> None:
    assert HostGpu(0, "GPU-0", "Tesla V100-SXM2-32GB", (7, 0)).target is None


def test_a_gpu_is_a_device_by_its_number_and_its_identity() -> None:
    device = HostGpu(1, "GPU-1", "NVIDIA H200", (9, 0)).device
    assert device is not None
    assert (device.name, device.product, device.uuid) == ("h200-1", "NVIDIA H200", "GPU-1")
    assert device.settings == {"LOOPWRIGHT_DEVICE": "h200-1", "CUDA_VISIBLE_DEVICES": "GPU-1"}
    assert device.without == {"LOOPWRIGHT_DEVICE": "", "CUDA_VISIBLE_DEVICES": ""}
    assert HostGpu(0, "GPU-0", "Tesla V100-SXM2-32GB", (7, 0)).device is None


@pytest.mark.parametrize(
    ("variable", "indices"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("2,0", [2, 0]),
        ("GPU-b", [1]),
        ("GPU-a, GPU-c", [0, 2]),
        ("1,7,0", [1]),
        ("1,1,0", [1]),
        ("GPU-", []),
    ],
)
def test_a_process_uses_the_gpus_that_its_environment_allows(
    variable: str | None, indices: list[int]
) -> None:
    uuids = ("GPU-a1", "GPU-b2", "GPU-c3")
    gpus = [HostGpu(index, uuid, "NVIDIA H200", (9, 0)) for index, uuid in enumerate(uuids)]
    assert [gpu.index for gpu in visible_gpus(gpus, variable)] == indices


def test_the_power_cap_does_not_count_as_throttling() -> None:
    assert not GpuState(1755, 690.0, 61, ("power cap",)).is_throttled
    assert GpuState(1200, 690.0, 88, ("power cap", "hardware slowdown")).is_throttled


def test_gpus_and_driver_come_together() -> None:
    assert bool(host_gpus()) == (driver_cuda_version() is not None)

"""Tensor maps are encoded by the driver of a GPU; `test_gpu_call.py` uses them on one."""

from __future__ import annotations

import pytest

from compiler.backends.cuda.device_code import TensorArgument
from compiler.backends.cuda.runtime.host_gpus import host_gpus
from compiler.backends.cuda.runtime.tensor_maps import encode_tensor_map
from compiler.backends.error import BuildError


@pytest.mark.skipif(bool(host_gpus()), reason="this host has a GPU")
def test_a_host_without_a_driver_encodes_none() -> None:
    tensor = TensorArgument(0, "bfloat16", (4, 96), (4, 64))
    with pytest.raises(BuildError, match="tensor maps need the driver of a GPU"):
        encode_tensor_map(tensor, 0)

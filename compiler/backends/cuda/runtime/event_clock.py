"""The clock of kernels on a GPU: events around a call, with cold caches."""

from __future__ import annotations

from functools import cache
from typing import Any

import cupy

from compiler.backends.cuda.runtime.gpu_call import GpuCall

# Larger than the L2 cache of each GPU in `compiler.target.gpus` (128 MiB at most).
_FLUSH_BYTES = 256 << 20


def time_on_gpu(call: GpuCall, calls: int) -> float:
    """Return the mean seconds a run of the kernels, without the copies of arrays of the host.

    The L2 cache is flushed before each run, outside of the time between the two events, since a
    kernel within a model finds its inputs in memory more often than in the cache.

    Raises:
        DeviceFaultError: If a kernel made the device unusable for this process.
    """
    with call.kernels.active(), call.stream:
        flush = _flush_buffer(call.kernels.device)
        events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(calls)]
        for start, end in events:
            flush.memset_async(0, _FLUSH_BYTES, call.stream)
            start.record(call.stream)
            call.launch()
            end.record(call.stream)
        call.stream.synchronize()
        millis = sum(cupy.cuda.get_elapsed_time(start, end) for start, end in events)
    return float(millis) / 1000 / calls


@cache
def _flush_buffer(device: int) -> Any:
    """Return memory on the current device, which is `device`."""
    del device  # the key of the cache
    return cupy.cuda.alloc(_FLUSH_BYTES)

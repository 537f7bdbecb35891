"""The workers of a host: some that share the cores of its CPU, and one for each of its devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compiler.backends.backend import host_devices, host_targets
from workers.engine import dask_worker


@dataclass(frozen=True, slots=True)
class HostWorker:
    """A worker process that a host offers.

    Attributes:
        name: Its name on this host: a number, or the name of its device.
        label: The kind of target that it serves, such as "cpu/znver3" or "cuda/h200".
        settings: The environment variables of its process.
    """

    name: str
    label: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def nanny_options(self) -> dict[str, Any]:
        """Return the options of its nanny, the process above it.

        As its only resource is its label, it runs one batch at a time: no two processes measure on
        a device at once.
        """
        return {
            "nthreads": 1,
            "memory_limit": 0,
            "resources": {self.label: 1},
            "preload": [dask_worker.__name__],
            "env": dict(self.settings),
        }


def host_workers(num_workers: int) -> list[HostWorker]:
    """Return the workers of this host.

    Args:
        num_workers: The number of workers for the CPU.
    """
    label = host_targets()[0].label
    on_cores = [HostWorker(str(number), label) for number in range(num_workers)]
    on_devices = [
        HostWorker(device.name, device.target.label, device.settings) for device in host_devices()
    ]
    return on_cores + on_devices

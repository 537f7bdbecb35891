"""The devices of this host: a process at a time measures on each, as one worker of the service.

The cores of the CPU are no device: any number of workers share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler.target.target import Target

DEVICE_VARIABLE = "LOOPWRIGHT_DEVICE"
"""The environment variable with the name of the device that a process works for."""


@dataclass(frozen=True, slots=True)
class HostDevice:
    """A device of this host.

    Attributes:
        target: The target of its kernels.
        name: Its name on this host, such as "h200-0", where the number is the driver's.
        product: The name of the product, such as "NVIDIA H200"; empty if it is emulated.
        uuid: Its identity, which no other device has; empty if it is emulated.
        variables: The environment variables of a process that uses this device and no other.
    """

    target: Target
    name: str
    product: str = ""
    uuid: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, str]:
        """Return all environment variables of a process that works for this device."""
        return {DEVICE_VARIABLE: self.name, **self.variables}

    @property
    def without(self) -> dict[str, str]:
        """Return the environment variables of a process beside it that uses no device."""
        return dict.fromkeys(self.settings, "")

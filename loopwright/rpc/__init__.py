"""Remote devices: `lw.rpc.connect` gives one, with arrays and kernels there (`docs/remote.md`)."""

from __future__ import annotations

from compiler.remote.arrays import RemoteArray
from compiler.remote.error import (
    EmulatedDeviceError,
    RemoteError,
    RemoteFaultError,
    RemoteGoneError,
    RemoteRefusedError,
)
from compiler.remote.module import RemoteModule
from compiler.remote.remote import Remote
from loopwright.rpc.connecting import connect

__all__ = [
    "EmulatedDeviceError",
    "Remote",
    "RemoteArray",
    "RemoteError",
    "RemoteFaultError",
    "RemoteGoneError",
    "RemoteModule",
    "RemoteRefusedError",
    "connect",
]

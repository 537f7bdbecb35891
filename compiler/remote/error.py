"""Errors of remote devices.

RemoteError
├── RemoteGoneError         the device vanished, did not answer in time, or answered with nonsense
├── RemoteRefusedError      it refused the request: a wrong token, no memory, another version
├── RemoteFaultError        the kernel crashed or ran too long, which ended the session
└── EmulatedDeviceError     times were requested of an emulator
"""

from __future__ import annotations

from compiler.user_errors import NoResultError


class RemoteError(NoResultError):
    """The root of the tree above."""


class RemoteGoneError(RemoteError, ConnectionError):
    """The device vanished: this session is over, and what it held is lost."""


class RemoteRefusedError(RemoteError):
    """The device refused a request; unless it ended the session, others may follow."""


class RemoteFaultError(RemoteError):
    """A kernel crashed or passed its deadline: the session is over, and the device is usable."""


class EmulatedDeviceError(RemoteError):
    """An emulator was asked for times, which would say nothing about the device."""

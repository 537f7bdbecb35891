"""The session of a child with the device behind a runner that it works for."""

from __future__ import annotations

from compiler.backends.backend import BACKENDS, Backend, device_of_process
from compiler.backends.cpu.runner_devices import command_of_process


def start_runner() -> None:
    """Start the runner of this process, if it has one, and use its device instead of the host.

    The program of the runner is in the process group of this process, and dies with it.

    Raises:
        RemoteError: If the runner does not answer.
    """
    command = command_of_process()
    if command is None:
        return
    # Few children have a runner, and each child of a search is waited for while it imports.
    from compiler.backends.cpu.runner_backend import RunnerBackend  # noqa: PLC0415
    from compiler.remote.channel import ProcessChannel  # noqa: PLC0415
    from compiler.remote.remote import Remote  # noqa: PLC0415

    device = device_of_process()
    assert device is not None, "the command and the name of a device are set together"
    remote = Remote(ProcessChannel(command, is_in_group=True), name=device.name)
    backend: Backend = RunnerBackend(remote, device.target)
    BACKENDS.replace("cpu", backend)

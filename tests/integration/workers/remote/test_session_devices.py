"""What answers the frames of a session: a child of a worker, or a device behind a runner."""

from __future__ import annotations

from tests.contracts.session_device import SessionDeviceContract
from tests.integration.compiler.remote.runners import runner_here
from workers.remote.sessions import ChildDevice, RunnerDevice


class TestChildDevice(SessionDeviceContract):
    def new(self) -> ChildDevice:
        return ChildDevice()


class TestRunnerDevice(SessionDeviceContract):
    def new(self) -> RunnerDevice:
        return RunnerDevice(runner_here())

"""Devices behind runners: machines without Python that this host measures on for others.

`$LOOPWRIGHT_RUNNERS` lists them, as JSON: `[{"target": "cpu -mcpu=cortex-a72 -num-cores=4",
"command": ["ssh", "board", "./loopwright-runner"]}]`. Child processes inherit it. A process that
works for one of them has its command in `$LOOPWRIGHT_RUNNER_COMMAND`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Sequence

from compiler.backends.host_device import HostDevice
from compiler.target.cpu import CpuTarget
from compiler.target.error import TargetError

RUNNERS = "LOOPWRIGHT_RUNNERS"
COMMAND = "LOOPWRIGHT_RUNNER_COMMAND"
_SEPARATOR = " @ "


def runner_devices() -> list[HostDevice]:
    """Return the devices that the environment lists.

    Raises:
        TargetError: If the text is malformed, or a target is no CPU.
    """
    text = os.environ.get(RUNNERS)
    if not text:
        return []
    try:
        entries = [(entry["target"], list(entry["command"])) for entry in json.loads(text)]
    except (LookupError, TypeError, ValueError) as error:
        raise TargetError(f"{RUNNERS} is malformed: {error!r}") from error
    return [_device(number, *entry) for number, entry in enumerate(entries)]


def _device(number: int, text: str, command: Sequence[str]) -> HostDevice:
    target = CpuTarget(text)
    return HostDevice(
        target=target,
        name=f"{target.cpu}-{number}",
        product="a device behind a runner",
        # Processes that measure on one device take turns by it.
        uuid=f"runner-{hashlib.sha256(json.dumps(command).encode()).hexdigest()[:16]}",
        variables={COMMAND: json.dumps(command)},
    )


def command_of_process() -> list[str] | None:
    """Return the command of the runner that this process works for; None without one."""
    text = os.environ.get(COMMAND)
    return None if not text else [str(word) for word in json.loads(text)]


def use_runners(texts: Iterable[str]) -> None:
    """Set the devices behind runners of this process and of its future children.

    Args:
        texts: For each, a target and a command: `cpu -mcpu=cortex-a72 @ ssh board ./runner`.

    Raises:
        TargetError: If one is malformed; nothing changes then.
    """
    entries = []
    for text in texts:
        target, separator, words = text.partition(_SEPARATOR)
        try:
            command = shlex.split(words)
        except ValueError as error:
            raise TargetError(
                f"the command of the runner {text!r} is malformed: {error}"
            ) from error
        if not separator or not command:
            raise TargetError(
                f"a runner is a target and a command, such as 'cpu -mcpu=cortex-a72{_SEPARATOR}ssh"
                f" board ./loopwright-runner', not {text!r}"
            )
        entries.append({"target": CpuTarget(target.strip()).name, "command": command})
    os.environ[RUNNERS] = json.dumps(entries)

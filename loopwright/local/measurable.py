"""Whether this machine can measure kernels for a target: told before trials are spent."""

from __future__ import annotations

from compiler.executor.cpu_flags import cpu_flags
from compiler.executor.error import PackageError
from compiler.executor.machine import check_machine
from compiler.target.cpu import CpuTarget
from compiler.target.error import TargetError


def require_measurable(subject: str, target: CpuTarget, advice: str) -> None:
    """Refuse to measure code for a CPU that this one can't replace.

    Args:
        subject: What would be measured.
        target: The CPU that it would be built for.
        advice: What to do instead.

    Raises:
        TargetError: If this machine can't run the code.
    """
    try:
        check_machine(subject, target.arch, cpu_flags(target.features, target.arch))
    except PackageError as error:
        raise TargetError(
            f"target {target.name!r}: this machine can't measure it: {error.args[0]}; {advice}"
        ) from error

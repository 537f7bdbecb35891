"""A filter of system calls for children: calls that no measurement needs fail with EPERM.

It refuses sockets, further processes, signals to others, and changes of the host. The filter is a
program for the kernel's virtual machine (`man 2 seccomp`), written here by hand: the Python
packages for it need libseccomp, which a host may lack. It applies to all threads, costs nothing
measurable a call, and cannot be removed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from dataclasses import dataclass

_SET_MODE_FILTER = 1
# Of all threads; and without the mitigations of Spectre that old kernels add with a filter: those
# would slow down the kernels that are timed.
_FLAGS = 1 | 4
_LOAD, _JUMP_EQUAL, _JUMP_GREATER_OR_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCH_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_CLONE_THREAD = 0x00010000
_PR_SET_PDEATHSIG = 1
_X32_BIT = 0x40000000


@dataclass(frozen=True)
class _Machine:
    """The numbers of system calls on one kind of machine."""

    audit_arch: int
    seccomp: int
    clone: int
    clone3: int
    prctl: int
    of_a_process: tuple[int, ...]  # whose first argument is a process: kill, tgkill, prlimit64
    refused: tuple[int, ...]
    outside: tuple[int, ...]  # files, memory and settings beyond the process


_MACHINES = {
    "x86_64": _Machine(
        audit_arch=0xC000003E,
        seccomp=317,
        clone=56,
        clone3=435,
        prctl=157,
        of_a_process=(62, 234, 302),
        refused=(
            *(57, 58, 59, 322),  # fork, vfork, execve, execveat
            *(41, 425),  # socket, io_uring_setup, which opens sockets too
            *(109, 112),  # setpgid, setsid: the group is killed whole
            *(129, 200, 297, 424, 438),  # rt_sigqueueinfo, tkill, rt_tgsigqueueinfo, pidfd_*
            *(101, 310, 311),  # ptrace, process_vm_readv, process_vm_writev
            *(155, 161, 165, 166, 272, 308, 428, 429, 430, 442),  # mounts and name spaces
            *(169, 175, 176, 246, 313, 320),  # reboot, modules, kexec
            *(248, 249, 250, 298, 304, 321, 323),  # keys, perf, handles, bpf, userfaultfd
        ),
        outside=(
            *(2, 85, 257, 437, 303),  # open, creat, openat, openat2, name_to_handle_at
            *(76, 82, 86, 87, 88, 263, 264, 265, 266, 316),  # truncate, rename, link, unlink
            *(83, 84, 133, 258, 259),  # mkdir, rmdir, mknod
            *(90, 92, 94, 260, 268, 452),  # chmod, chown
            *(132, 235, 261, 280),  # utime
            *(188, 189, 197, 198, 463, 466, 469),  # setxattr, removexattr, file_setattr
            *(80, 89, 267),  # chdir, readlink
            *(134, 163, 167, 179, 254, 300),  # uselib, acct, swapon, quotactl, inotify, fanotify
            *(29, 30, 64, 68, 240),  # shmget, shmat, semget, msgget, mq_open
            *(141, 142, 144, 203, 314, 251),  # priority and cores of other processes
            *(256, 279),  # migrate_pages, move_pages
        ),
    ),
    "aarch64": _Machine(
        audit_arch=0xC00000B7,
        seccomp=277,
        clone=220,
        clone3=435,
        prctl=167,
        of_a_process=(129, 131, 261),
        refused=(
            *(221, 281),
            *(198, 425),
            *(154, 157),
            *(138, 130, 240, 424, 438),
            *(117, 270, 271),
            *(41, 51, 40, 39, 97, 268, 428, 429, 430, 442),
            *(142, 105, 106, 104, 273, 294),
            *(217, 218, 219, 241, 265, 280, 282),
        ),
        outside=(
            *(56, 437, 264),
            *(45, 35, 36, 37, 38, 276),
            *(33, 34),
            *(53, 54, 452),
            *(88,),
            *(5, 6, 14, 15, 463, 466, 469),
            *(49, 78),
            *(89, 224, 60, 27, 262),
            *(194, 196, 190, 186, 180),
            *(140, 118, 119, 122, 274, 30),
            *(238, 239),
        ),
    ),
}


class SeccompError(OSError):
    """The kernel does not accept a filter."""


def refuse_system_calls(*, outside: bool = False) -> None:
    """Install the filter for this process, which has `no_new_privs` already.

    Args:
        outside: Refuse to open files and shared memory too, and to change what belongs to other
            processes: what the process needs must be open and imported.

    Raises:
        SeccompError: If the kernel refuses it, or the machine is unknown here.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise SeccompError(errno.ENOSYS, f"no filter is known for {platform.machine()}")
    steps = _program(machine, os.getpid(), outside)
    code = ctypes.create_string_buffer(b"".join(steps))

    class Program(ctypes.Structure):
        _fields_ = (("num_steps", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    program = Program(len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for flags in (_FLAGS, 1):  # the second flag is of Linux 4.17
        if not libc.syscall(machine.seccomp, _SET_MODE_FILTER, flags, ctypes.byref(program)):
            return
    number = ctypes.get_errno()
    raise SeccompError(number, os.strerror(number))


def _program(machine: _Machine, pid: int, outside: bool) -> list[bytes]:
    """Return the steps: each check of a call either answers or goes on to the next check."""
    refuse = [_step(_RETURN, _ERROR | errno.EPERM)]
    allow = [_step(_RETURN, _ALLOW)]
    number = [_step(_LOAD, _NUMBER_AT)]
    argument = [_step(_LOAD, _FIRST_ARGUMENT_AT)]
    steps = [_step(_LOAD, _ARCH_AT), *_unless(_JUMP_EQUAL, machine.audit_arch, refuse), *number]
    if machine.audit_arch == _MACHINES["x86_64"].audit_arch:
        steps += _if(_JUMP_GREATER_OR_EQUAL, _X32_BIT, refuse)
    for call in (*machine.refused, *(machine.outside if outside else ())):
        steps += _if(_JUMP_EQUAL, call, refuse)
    # Its flags lie in memory, which a filter cannot read: libraries fall back to `clone`.
    steps += _if(_JUMP_EQUAL, machine.clone3, [_step(_RETURN, _ERROR | errno.ENOSYS)])
    is_thread = [*argument, *_unless(_JUMP_SET, _CLONE_THREAD, refuse), *allow]
    steps += _if(_JUMP_EQUAL, machine.clone, is_thread)
    # The signal that comes when the parent dies stays as it is.
    keeps_signal = [*argument, *_if(_JUMP_EQUAL, _PR_SET_PDEATHSIG, refuse), *allow]
    steps += _if(_JUMP_EQUAL, machine.prctl, keeps_signal)
    is_own = [*argument, *_if(_JUMP_EQUAL, pid, allow), *_if(_JUMP_EQUAL, 0, allow), *refuse]
    for call in machine.of_a_process:
        steps += _if(_JUMP_EQUAL, call, is_own)
    return [*steps, *allow]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _if(jump: int, value: int, then: list[bytes]) -> list[bytes]:
    return [_step(jump, value, 0, len(then)), *then]


def _unless(jump: int, value: int, then: list[bytes]) -> list[bytes]:
    return [_step(jump, value, len(then), 0), *then]

"""The device side of the protocol in this process: `docs/remote_protocol.md`.

It does what `loopwright-runner` does, in the sandboxed child of a worker. Deadlines are those of
the process above, which kills this one.
"""

from __future__ import annotations

import ctypes
import resource
import struct
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from compiler.backends.cpu.runtime.pool import launch_address
from compiler.executor.cores import available_cores
from compiler.executor.error import PackageError
from compiler.executor.loaded_code import external_address
from compiler.executor.machine import architecture, is_emulated, listed_features, vector_bits
from compiler.remote.protocol import (
    MAX_BODY_BYTES,
    MAX_CALLS,
    MAX_DEADLINE_SECS,
    MAX_SAMPLES,
    VERSION,
    DeviceFacts,
    DeviceFailure,
    DeviceFrameError,
    Kind,
    Sample,
    Word,
    encode,
    read_frame,
    read_numbers,
    read_words,
    write_facts,
    write_failure,
    write_samples,
)
from workers.remote.regions import RefusedRequestError, Regions

_RUNNER = "loopwright worker 1"
_SERIAL = b"lw_launch_serially"
_RUN = struct.Struct("<QQIIII")
_Entry: TypeAlias = Callable[[], object]


class DeviceSession:
    """One session; the process that owns it checks who its client is.

    It opens no file after its construction.

    Args:
        memory_bytes: The limit of the memory of the session.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._regions = Regions(memory_bytes)
        self._facts = DeviceFacts(
            is_emulated=is_emulated(),
            num_cores=available_cores(),
            vector_bits=vector_bits(),
            memory_bytes=memory_bytes,
            arch=architecture(),
            features=listed_features(),
            runner=_RUNNER,
        )
        _address(b"no such function")  # loads all libraries

    def answer(self, frame: bytes) -> bytes:
        """Return the frame that answers a request."""
        number = 0
        try:
            header, body = read_frame(frame)
            number = header.number
            return encode(Kind.DONE, number, self._answer(header.kind, body))
        except RefusedRequestError as error:
            return write_failure(number, error.failure)
        except (DeviceFrameError, struct.error, UnicodeDecodeError):
            return write_failure(number, DeviceFailure.MALFORMED)

    def _answer(self, kind: int, body: bytes) -> bytes:
        regions = self._regions
        match kind:
            case Kind.HELLO:
                return self._hello(body)
            case Kind.RESERVE:
                size, is_code = read_numbers("QI", body)
                return struct.pack("<QQ", *regions.reserve(size, is_code=bool(is_code)))
            case Kind.WRITE:
                number, offset = read_numbers("QQ", body[:16])
                regions.write(number, offset, body[16:])
            case Kind.READ:
                return regions.read(*read_numbers("QQQ", body))
            case Kind.RESOLVE:
                return _addresses(body)
            case Kind.RUN:
                return self._run(body)
            case Kind.RELEASE | Kind.SEAL | Kind.PROTECT:
                acts: dict[int, tuple[str, Callable[..., None]]] = {
                    Kind.RELEASE: ("Q", regions.release),
                    Kind.SEAL: ("QQQ", regions.seal),
                    Kind.PROTECT: ("Q", regions.protect),
                }
                form, act = acts[kind]
                act(*read_numbers(form, body))
            case Kind.BYE if not body:
                pass
            case _:
                raise RefusedRequestError(DeviceFailure.MALFORMED)
        return b""

    def _hello(self, body: bytes) -> bytes:
        if read_numbers("I", body[:4]) != (VERSION,):
            raise RefusedRequestError(DeviceFailure.WRONG_VERSION)
        return write_facts(self._facts)

    def _run(self, body: bytes) -> bytes:
        code, entry, calls, samples, deadline_millis, num_words = _RUN.unpack_from(body)
        words = read_words(body[_RUN.size :], num_words)
        region = self._regions.find(code)
        if not region.is_sealed:
            raise RefusedRequestError(DeviceFailure.UNKNOWN_REGION)
        is_legal = entry < region.size and 1 <= calls <= MAX_CALLS and samples <= MAX_SAMPLES
        if not is_legal or not 1 <= deadline_millis <= 1000 * MAX_DEADLINE_SECS:
            raise RefusedRequestError(DeviceFailure.OUT_OF_RANGE)
        values = self._values(words)
        if samples and self._facts.is_emulated:
            raise RefusedRequestError(DeviceFailure.EMULATED)
        array = (ctypes.c_uint64 * len(values))(*values)
        kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(region.address + entry)
        run = partial(kernel, ctypes.addressof(array))
        if not samples:
            for _ in range(calls):
                run()
        return write_samples([_timed(run, calls) for _ in range(samples)])

    def _values(self, words: Sequence[Word]) -> list[int]:
        values = []
        for word in words:
            value = word.offset
            if word.region is not None:
                region = self._regions.find(word.region)
                if region.is_code and not region.is_sealed:
                    raise RefusedRequestError(DeviceFailure.UNKNOWN_REGION)
                if word.offset > region.size:
                    raise RefusedRequestError(DeviceFailure.OUT_OF_RANGE)
                value += region.address
            values.append(value)
        return values


def _timed(run: _Entry, calls: int) -> Sample:
    switches = _preemptions()
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    for _ in range(calls):
        run()
    wall, cpu = time.perf_counter_ns() - wall, time.thread_time_ns() - cpu
    return Sample(wall, cpu, _preemptions() - switches)


def _preemptions() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw


def _addresses(body: bytes) -> bytes:
    """Return the address of each function, 0 for one that is not here. A zero ends each name."""
    if body and not body.endswith(b"\0"):
        raise RefusedRequestError(DeviceFailure.MALFORMED)
    names = body.split(b"\0")[:-1]
    if 8 * len(names) > MAX_BODY_BYTES:
        raise RefusedRequestError(DeviceFailure.OUT_OF_RANGE)
    return b"".join(struct.pack("<Q", _address(name)) for name in names)


def _address(name: bytes) -> int:
    """Return the address of a function of this system; 0 if there is none."""
    try:
        return launch_address() if name == _SERIAL else external_address(name.decode("ascii"))
    except PackageError:
        return 0

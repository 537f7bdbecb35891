"""The disposable child: `python -m workers.child.child PARENT REQUESTS RESULTS SLOT...`.

It measures one candidate after the other, or a few side by side, and any of them may crash it. It
reads requests from one pipe and writes phases and measurements to another; see
`workers.wire.frames`. Slots are memory files for data that should outlive it; see
`workers.measure.shared_arrays`.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import Iterator, Sequence

from compiler.backends.backend import BACKENDS, backend_of, device_of_process
from compiler.driver import toolchain
from compiler.executor.functions.imported import import_functions
from compiler.executor.functions.registry import allow_only, allowed_functions
from workers.child.memory_limit import OwnMemory
from workers.child.parent_death import die_with_parent
from workers.child.runner_session import start_runner
from workers.child.sandbox import confine, is_spent, refuse
from workers.libraries.load import Load, load_library
from workers.measure.compare import Announce, Build, CompareRequest
from workers.measure.measure import CandidateMeasurer, build_candidate
from workers.wire.built import BuiltCandidate
from workers.wire.frames import FrameDecoder, Message, encode
from workers.wire.phase import Phase
from workers.wire.request import MeasureLimits, MeasureRequest, SeatRequest

_READ_BYTES = 1 << 16
"""Bytes of one read of the pipe: the capacity of a pipe on Linux."""
_GC_THRESHOLD = 50_000
"""New objects between two collections: those of a few candidates. Chosen."""


def main(build: Build = build_candidate, load: Load = load_library) -> None:
    """Answer requests until the pipe closes.

    Args:
        build: Makes the artifact of a candidate; tests replace it by one that makes faulty kernels.
        load: Loads a library by its name; tests replace it by one that loads faulty libraries.
    """
    parent, requests, results, *slots = (int(text) for text in sys.argv[1:])
    allow_only(allowed_functions())
    import_functions()
    start_runner()  # another program, which this process may not start later
    lacks = confine()
    die_with_parent(parent)  # a new name space of users would have cleared the signal
    lacks += refuse()
    if (device := device_of_process()) is not None:
        backend_of(device.target).open_device(device)
    own_memory = OwnMemory.now()
    measurer = CandidateMeasurer(build, slots, load)
    # What is loaded by now stays; what a candidate makes has few cycles, and many small objects.
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)

    def say(message: Message) -> None:
        content = memoryview(encode(message))
        while content:
            content = content[os.write(results, content) :]

    def announce(phase: Phase, contestant: int | None) -> None:
        say({"phase": phase, "contestant": contestant})

    say({"host": _host(own_memory.resident_bytes, lacks), "peak_bytes": _peak_bytes()})
    decoder = FrameDecoder()
    while content := os.read(requests, _READ_BYTES):
        for message in decoder.feed(content):
            for reply in _replies(message, measurer, announce, own_memory):
                say(reply)


def _replies(
    message: Message, measurer: CandidateMeasurer, announce: Announce, own_memory: OwnMemory
) -> Iterator[Message]:
    """Yield the replies to a request, with the memory limit that it sets.

    Args:
        message: A comparison, a seat in one, a turn of one, a build, or a measurement.
        measurer: Answers it.
        announce: Called with each phase.
        own_memory: The memory of this process before the first request.
    """
    if CompareRequest.is_in(message):
        rounds = CompareRequest.from_json(message)
        _limit_memory(own_memory, rounds)
        yield from measurer.compare(rounds, announce)
        yield {"done": True, "peak_bytes": _peak_bytes(), "is_spent": _is_spent(measurer)}
    elif "seat" in message:
        seat = SeatRequest.from_json(message["seat"])
        _limit_memory(own_memory, seat)
        yield measurer.sit(seat, announce)
    elif "turn" in message:
        yield measurer.turn(message["turn"], message["num_threads"])
    elif "build" in message:
        request = MeasureRequest.from_json(message["build"])
        _limit_memory(own_memory, request)
        answer = measurer.build(request)
        yield {**answer, "peak_bytes": _peak_bytes(), "is_spent": _is_spent(measurer)}
    else:
        built = BuiltCandidate.from_json(message["built"]) if "built" in message else None
        request = MeasureRequest.from_json(message.get("measure", message))
        _limit_memory(own_memory, request)
        measurement = measurer.measure(request, lambda phase: announce(phase, None), built)
        answer = {"measurement": measurement.to_json(), "peak_bytes": _peak_bytes()}
        yield {**answer, "is_spent": _is_spent(measurer)}


def _limit_memory(
    own_memory: OwnMemory, request: CompareRequest | SeatRequest | MeasureRequest
) -> None:
    limits = request.limits or MeasureLimits()
    own_memory.limit_for(request.workload, request.target, limits.memory_bytes)


def _is_spent(measurer: CandidateMeasurer) -> bool:
    """Return whether another child should take over, after a request."""
    return is_spent() or measurer.has_lost_device


def _host(resident_bytes: int, lacks: Sequence[str]) -> Message:
    """Return the greeting; `workers.child.host` reads it."""
    # Not `host_targets`: the backends of other kinds take a fifth of the start to load.
    cpu = BACKENDS.find("cpu").host_targets()[0]
    return {
        "label": cpu.label,
        "toolchain": toolchain(cpu.kind),
        "resident_bytes": resident_bytes,
        "lacks": lacks,
    }


def _peak_bytes() -> int:
    """Return the peak of this process's memory, or of its parent's before it was started."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


if __name__ == "__main__":
    main()

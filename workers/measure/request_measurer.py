"""The contract of measurers of requests: a child runner, or an engine of many workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from compiler.runtime.measurement import Measurement
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureRequest


class RequestMeasurer(Protocol):
    """Measures the candidates of requests, each in a disposable child.

    A failure of a candidate is a measurement with an error; an exception means that measuring
    itself is broken. `tests/contracts/request_measurer.py` holds each implementation to this.
    """

    def measure(self, request: MeasureRequest) -> Iterator[tuple[int, Measurement]]:
        """Yield the index of each trace with its measurement, in the order of completion.

        Measuring may begin at the call. Every index comes exactly once. The caller may close the
        iterator before its end: the measurements that have not begun are then abandoned.
        """
        ...

    def compare(self, request: CompareRequest) -> Iterator[list[Measurement]]:
        """Yield rounds in which all contestants are timed side by side, one measurement each.

        A contestant that fails is an error in that round and in each later one. With libraries
        there may be fewer rounds than requested, and at least one.
        """
        ...

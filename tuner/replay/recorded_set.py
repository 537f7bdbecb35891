"""The recorded set: measured candidates of one task, with all data to search them again.

A set holds its own program, sketches, choices and times, so later changes of rules do not affect
it. Features are computed from the stored nests by the current code. Some of its candidates were
drawn from the whole space, others from those that the static filter keeps.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from compiler.ir.analysis.structural import operator_hash
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.script.parser import parse
from compiler.target.target import Target
from tuner.candidate import Candidate
from tuner.cost_model.cost_model import Samples, Scores
from tuner.replay.recorded_space import RecordedSpace
from tuner.space.design_space import Point
from tuner.space.sketch_json import read_sketch, write_sketch
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch
from tuner.task import Task

FORMAT = "loopwright-recorded-set"
FORMAT_VERSION = 2
SUFFIX = ".json.xz"

Masks: TypeAlias = tuple[npt.NDArray[np.bool_], ...]
"""By sketch: a flag for each candidate."""


class RecordedSetError(ValueError):
    """A file that is not a recorded set, or one of another version."""


@dataclass(frozen=True)
class RecordedSet:
    """Measured candidates of one task.

    Attributes:
        name: Such as `matmul_256x256x256`.
        operator: The operator, such as `matmul`, by which sets are held out.
        script: The program.
        target: The name of the target.
        sketches: The sketches of the candidates.
        rows: By sketch, the choices of each candidate, a row each.
        is_drawn: Which were drawn from the whole space, evenly.
        is_kept: Which the static filter kept at that time.
        secs: By sketch, the shortest sample of each candidate in seconds; infinite for a failure.
        errors: The errors of those whose time is infinite.
        provenance: Machine, code generator, commit, date, and the repeatability of the times.
    """

    name: str
    operator: str
    script: str
    target: str
    sketches: tuple[Sketch, ...]
    rows: tuple[Ints, ...]
    is_drawn: Masks
    is_kept: Masks
    secs: tuple[Scores, ...]
    errors: dict[Point, ErrorKind]
    provenance: dict[str, Any]

    def __len__(self) -> int:
        """Return the number of candidates."""
        return sum(map(len, self.secs))

    @cached_property
    def drawn(self) -> RecordedSet:
        """Return the candidates drawn from the whole space: an even sample of it."""
        return self._only(self.is_drawn)

    @cached_property
    def kept(self) -> RecordedSet:
        """Return the candidates that the static filter kept: a sample of those a search sees."""
        return self._only(self.is_kept)

    @cached_property
    def task(self) -> Task:
        """Return the task that was measured."""
        return Task(parse(self.script), Target(self.target))

    @cached_property
    def space(self) -> RecordedSpace:
        """Return the design space that holds exactly the measured candidates."""
        return RecordedSpace(self.sketches, Target(self.target), self.rows)

    @cached_property
    def by_point(self) -> dict[Point, float]:
        """Return the time of each candidate in seconds."""
        return {
            Point(sketch, tuple(row)): secs
            for sketch, rows in enumerate(self.rows)
            for row, secs in zip(rows.tolist(), self.secs[sketch].tolist(), strict=True)
        }

    @property
    def best_secs(self) -> float:
        """Return the time of the fastest candidate in seconds; infinity without a correct one."""
        return min(self.by_point.values(), default=np.inf)

    def samples(self) -> Samples:
        """Return all candidates with their features, as samples for a cost model."""
        matrices = [self.space.features(i, rows) for i, rows in enumerate(self.rows)]
        return Samples(
            self.task.key,
            np.vstack(matrices),
            np.concatenate(self.secs),
            operator=operator_hash(self.task.func),
            label=self.task.target.timing_label,
        )

    def measurement(self, point: Point) -> Measurement:
        """Return the measurement of a point.

        Raises:
            KeyError: If it is not in the set.
        """
        error = self.errors.get(point)
        if error is not None:
            return Measurement(error=error)
        return Measurement((self.by_point[point],))

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        """Yield each candidate's recorded measurement; see `Measurer`.

        Raises:
            LookupError: If a candidate was not recorded.
        """
        for index, candidate in enumerate(candidates):
            point = self.space.point(candidate)
            if point is None:
                raise LookupError(
                    f"candidate {candidate.key[:12]} of sketch {candidate.sketch!r} is not among "
                    f"the {len(self)} recorded of {self.name}"
                )
            yield index, self.measurement(point)

    def _only(self, which: Masks) -> RecordedSet:
        rows = tuple(r[m] for r, m in zip(self.rows, which, strict=True))
        points = {
            Point(s, tuple(row))
            for s, sketch_rows in enumerate(rows)
            for row in sketch_rows.tolist()
        }
        return replace(
            self,
            rows=rows,
            is_drawn=tuple(d[m] for d, m in zip(self.is_drawn, which, strict=True)),
            is_kept=tuple(k[m] for k, m in zip(self.is_kept, which, strict=True)),
            secs=tuple(s[m] for s, m in zip(self.secs, which, strict=True)),
            errors={point: error for point, error in self.errors.items() if point in points},
        )

    def write(self, folder: Path) -> Path:
        """Write the set to `NAME.json.xz`; return the path."""
        content = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "name": self.name,
            "operator": self.operator,
            "script": self.script,
            "target": self.target,
            "provenance": self.provenance,
            "sketches": [write_sketch(sketch) for sketch in self.sketches],
            "rows": [rows.tolist() for rows in self.rows],
            "is_drawn": [_bits(mask) for mask in self.is_drawn],
            "is_kept": [_bits(mask) for mask in self.is_kept],
            # A tenth of a nanosecond is finer than any clock; a failure is a null.
            "nanosecs": [
                [round(s * 1e9, 1) if np.isfinite(s) else None for s in secs.tolist()]
                for secs in self.secs
            ],
            "errors": [[p.sketch, *p.choices, kind.value] for p, kind in self.errors.items()],
        }
        path = folder / f"{self.name}{SUFFIX}"
        text = json.dumps(content, separators=(",", ":"))
        path.write_bytes(lzma.compress(text.encode(), preset=9))
        return path

    @classmethod
    def read(cls, path: Path) -> RecordedSet:
        """Read a file of `write`.

        Raises:
            RecordedSetError: If it is not a recorded set, or has another version.
            OSError: If the file does not exist.
        """
        try:
            content = json.loads(lzma.decompress(path.read_bytes()))
        except (ValueError, lzma.LZMAError) as error:
            raise RecordedSetError(f"{path.name} is not a recorded set: {error}") from error
        file_version = (content.get("format"), content.get("version"))
        if file_version != (FORMAT, FORMAT_VERSION):
            raise RecordedSetError(
                f"{path.name} is not a recorded set of version {FORMAT_VERSION}, but {file_version}"
            )
        sketches = tuple(read_sketch(obj) for obj in content["sketches"])
        widths = [len(sketch.knobs) for sketch in sketches]
        return cls(
            name=content["name"],
            operator=content["operator"],
            script=content["script"],
            target=content["target"],
            sketches=sketches,
            rows=tuple(
                np.array(rows, np.int64).reshape(len(rows), width)
                for rows, width in zip(content["rows"], widths, strict=True)
            ),
            is_drawn=tuple(_mask(bits) for bits in content["is_drawn"]),
            is_kept=tuple(_mask(bits) for bits in content["is_kept"]),
            secs=tuple(
                np.array([np.inf if s is None else s / 1e9 for s in secs])
                for secs in content["nanosecs"]
            ),
            errors={
                Point(sketch, tuple(choices)): ErrorKind(kind)
                for sketch, *choices, kind in content["errors"]
            },
            provenance=content["provenance"],
        )


def read_sets(folder: Path) -> list[RecordedSet]:
    """Return all sets of a folder, by name."""
    return [RecordedSet.read(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]


def _bits(mask: npt.NDArray[np.bool_]) -> str:
    return "".join("01"[int(bit)] for bit in mask)


def _mask(bits: str) -> npt.NDArray[np.bool_]:
    return np.array([bit == "1" for bit in bits], np.bool_)

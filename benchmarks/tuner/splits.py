"""Splits of the recorded sets: what a model is trained on, and the sets on which it is judged.

A model never sees the program that it is judged on, on any CPU. Groups are held out in a few folds,
several at a time, so that an evaluation trains few models.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.weights import OTHER_TARGET
from tuner.replay.packaged import ROWS, thinned
from tuner.replay.recorded_set import RecordedSet


@dataclass(frozen=True)
class Judged:
    """A recorded set with its samples."""

    recorded: RecordedSet
    samples: Samples

    @property
    def operator(self) -> str:
        """The operator, by which sets are held out."""
        return self.recorded.operator

    @property
    def cpu(self) -> str:
        """The CPU of the recording, by LLVM's name."""
        return CpuTarget.of(Target(self.recorded.target)).cpu


@dataclass(frozen=True)
class Fold:
    """Samples to train a model on, and the sets to judge it on, by their indices."""

    training: tuple[Samples, ...]
    judged: tuple[int, ...]


def by_group(sets: Sequence[Judged], groups: Sequence[Hashable], num_folds: int) -> Iterator[Fold]:
    """Yield folds in which every `num_folds`-th group is held out."""
    names = list(dict.fromkeys(groups))
    numbers = [names.index(group) % num_folds for group in groups]
    for number in range(min(num_folds, len(names))):
        held = [index for index, own in enumerate(numbers) if own == number]
        others = (each for each, own in zip(sets, numbers, strict=True) if own != number)
        yield _fold(sets, held, others)


def operators(sets: Sequence[Judged]) -> list[Hashable]:
    """Return the operator of each set."""
    return [each.operator for each in sets]


def shapes(sets: Sequence[Judged]) -> list[Hashable]:
    """Return the number of each set's program among those of its operator."""
    known: dict[str, list[str]] = {}
    numbers: list[Hashable] = []
    for each in sets:
        own = known.setdefault(each.operator, [])
        if each.recorded.script not in own:
            own.append(each.recorded.script)
        numbers.append(own.index(each.recorded.script))
    return numbers


def by_cpu(
    sets: Sequence[Judged], judged_cpu: str, num_samples: int, num_folds: int, seed: int
) -> Iterator[Fold]:
    """Yield folds of the sets of one CPU, judged by models of all others.

    Args:
        judged_cpu: The CPU that is held out.
        num_samples: Samples of it that models are trained on, evenly from its sets of other
            operators than the judged ones.
        num_folds: In so many folds: with samples, operators are held out, and without, programs.
            So a model knows the other programs of a CPU with sets of the same ones.
        seed: Of the choice of these samples.
    """
    own = [each for each in sets if each.cpu == judged_cpu]
    indices = [index for index, each in enumerate(sets) if each.cpu == judged_cpu]
    others = [each for each in sets if each.cpu != judged_cpu]
    groups = operators(own) if num_samples else [each.recorded.script for each in own]
    for fold in by_group(own, groups, num_folds):
        if not num_samples:
            yield _fold(sets, [indices[index] for index in fold.judged], others)
            continue
        known = [each for index, each in enumerate(own) if index not in fold.judged]
        foreign = _fold(sets, [indices[index] for index in fold.judged], others)
        weighted = (_weighted(each, OTHER_TARGET) for each in foreign.training)
        yield Fold((*weighted, *_drawn(known, num_samples, seed)), foreign.judged)


def by_other_cpu(sets: Sequence[Judged], judged_cpu: str, known_cpu: str) -> Iterator[Fold]:
    """Yield one fold: the sets of one CPU, judged by a model of one other CPU alone."""
    held = [index for index, each in enumerate(sets) if each.cpu == judged_cpu]
    yield _fold(sets, held, [each for each in sets if each.cpu == known_cpu])


def _fold(sets: Sequence[Judged], held: Sequence[int], others: Iterable[Judged]) -> Fold:
    scripts = {sets[index].recorded.script for index in held}
    known = [each for each in others if each.recorded.script not in scripts]
    return Fold(tuple(thinned(each.samples, ROWS) for each in known), tuple(held))


def _weighted(samples: Samples, weight: float) -> Samples:
    return replace(samples, weights=np.full(len(samples.run_secs), weight))


def _drawn(known: Sequence[Judged], num: int, seed: int) -> Iterator[Samples]:
    """Yield `num` random samples, an equal number of each set that has enough."""
    rng = np.random.default_rng(seed)
    by_size = sorted(known, key=lambda each: len(each.samples.run_secs))
    for index, each in enumerate(by_size):
        samples = each.samples
        size = min(round(num / (len(by_size) - index)), len(samples.run_secs))
        num -= size
        rows = np.sort(rng.permutation(len(samples.run_secs))[:size])
        yield Samples(samples.task_key, samples.features[rows], samples.run_secs[rows])

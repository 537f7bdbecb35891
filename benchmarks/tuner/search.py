"""Replay search strategies on recorded sets, without measuring: `make bench-search`.

Each strategy runs on each set with 20 seeds: on a uniform sample of the whole space, and on the
part that passes the static filter. The number of trials to within 5% of the best is written to
`benchmarks/results/search.json`, and best-so-far curves with bands to `docs/search.png`. See
`docs/search.md` for the conclusions. Existing results are reused, unless `--again` is given.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks import RESULTS
from benchmarks.report import commit
from tuner.cost_model import stored_model
from tuner.cost_model.boosting import boost
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.replay.packaged import ROWS, packaged_sets, thinned
from tuner.replay.play import play, trials_to
from tuner.replay.recorded_set import RecordedSet
from tuner.search.make import PROPOSERS
from tuner.search.searcher import Searcher

FILE = RESULTS / "search.json"
PICTURE = Path(__file__).parents[2] / "docs" / "search.png"
NUM_SEEDS = 20
TRIALS = 128
SHARE = 0.95
UNTIL = 0.98
"""Share of the best speed at which a search counts as finished."""
GOAL = 1 / 3
"""Goal: the share of the trials that random search needs."""
LEAST = 40
"""Minimum number of candidates of a searched set or part; one round covers smaller ones."""
QUARTILES = (0.25, 0.5, 0.75)
TRAINED = "evolutionary, trained"
"""Evolutionary search with a model trained on the sets of all other operators. "evolutionary"
learns only from its own measurements, and the others have no model.
"""
LABELS = ("random", "exhaustive", "annealing", "local", "evolutionary", TRAINED)
PARTS = {"drawn": LABELS, "kept": ("random", "evolutionary", TRAINED)}
"""The parts of a set, with the strategies that run on them."""
COLORS = ("gray", "tan", "tab:green", "tab:purple", "tab:blue", "tab:red")


def main() -> None:
    """Run the strategies, print a table, and draw curves."""
    parser = argparse.ArgumentParser(prog="make bench-search", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SET", help="sets to run; by default all")
    parser.add_argument("--again", action="store_true", help="repeat runs with existing results")
    args = parser.parse_args()
    played = json.loads(FILE.read_text()) if FILE.exists() else {}
    for recorded in packaged_sets():
        if args.names and recorded.name not in args.names:
            continue
        for part, labels in PARTS.items():
            own = recorded.drawn if part == "drawn" else recorded.kept
            name = f"{recorded.name}, {part}"
            if len(own) >= LEAST and (args.again or name not in played):
                played[name] = _play_all(own, part, labels)
                FILE.write_text(json.dumps(dict(sorted(played.items())), indent=1) + "\n")
    for part, labels in PARTS.items():
        _print(part, _of(played, part), labels)
    _draw(_of(played, "drawn"))


def _of(played: dict[str, Any], part: str) -> dict[str, Any]:
    """Return the results for one part of the sets, by the names of the sets."""
    ending = f", {part}"
    return {name.removesuffix(ending): f for name, f in played.items() if name.endswith(ending)}


def _play_all(recorded: RecordedSet, part: str, labels: Sequence[str]) -> dict[str, Any]:
    """Return what each strategy reached on a part of a set, and what that is."""
    strategies = {}
    for label in labels:
        searches = (_searcher(label, recorded, seed) for seed in range(NUM_SEEDS))
        curves = np.array([play(recorded, search, TRIALS, until=UNTIL) for search in searches])
        reached = [trials_to(curve, SHARE) for curve in curves]
        strategies[label] = {
            "trials": [None if np.isinf(number) else int(number) for number in reached],
            "curves": np.quantile(curves, QUARTILES, axis=0).round(4).tolist(),
        }
    near = sum(secs <= recorded.best_secs / SHARE for secs in recorded.by_point.values())
    return {
        "candidates": len(recorded),
        "within_5_percent": near,
        "repeated_within": recorded.provenance["repeatability"][part]["spread"],
        "commit": commit(),
        "strategies": strategies,
    }


def _searcher(label: str, recorded: RecordedSet, seed: int) -> Searcher:
    name = "evolutionary" if label == TRAINED else label
    base = _base(recorded.operator) if label == TRAINED else None
    return Searcher(
        PROPOSERS[name],
        recorded.space,
        seed,
        XGBoostModel(seed, base=base) if name == "evolutionary" else None,
        task_key=recorded.task.key,
    )


@cache
def _base(operator: str) -> bytes:
    """Return a model trained on all other operators, as the base model is."""
    others = (each for each in packaged_sets() if each.operator != operator)
    samples = [thinned(each.samples(), ROWS) for each in others]
    return stored_model.encode(boost(samples, 0))


def _median(trials: list[int | None]) -> float:
    """Return the median number of trials; a search that never finished counts as infinite."""
    return float(np.median([np.inf if number is None else number for number in trials]))


def _print(part: str, played: dict[str, Any], labels: Sequence[str]) -> None:
    table = Table(title=f"{part}: median trials to {SHARE:.0%} of the best", box=SIMPLE_HEAD)
    for name in ("set", "candidates", "near best", *labels, "trained / random"):
        table.add_column(name, justify="left" if name == "set" else "right")
    ratios = []
    for name, found in played.items():
        medians = {label: _median(found["strategies"][label]["trials"]) for label in labels}
        ratios.append(medians[TRAINED] / medians["random"])
        cells = [f"{median:g}" for median in medians.values()]
        near = str(found["within_5_percent"])
        table.add_row(name, str(found["candidates"]), near, *cells, f"{ratios[-1]:.2f}")
    console = Console(width=160)
    console.print(table)
    within = sum(ratio <= GOAL for ratio in ratios)
    console.print(f"{part}: {within} of {len(ratios)} sets at {GOAL:.2f} or less")


def _draw(played: dict[str, Any]) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - of the extra `bench`

    columns = 5
    rows = -(-len(played) // columns)
    figure = Figure(figsize=(3.4 * columns, 2.4 * rows), layout="constrained")
    axes = np.atleast_2d(figure.subplots(rows, columns, sharex=True, sharey=True)).ravel()
    for place, (name, found) in enumerate(played.items()):
        for label, color in zip(LABELS, COLORS, strict=True):
            low, middle, high = (np.array(c) for c in found["strategies"][label]["curves"])
            trials = np.arange(1, len(middle))
            axes[place].plot(trials, middle[1:], color=color, label=label, linewidth=1.4)
            axes[place].fill_between(trials, low[1:], high[1:], color=color, alpha=0.15)
        axes[place].set_title(name, fontsize=8)
        axes[place].axhline(SHARE, color="black", linewidth=0.5, linestyle=":")
        axes[place].set_xscale("log", base=2)
        axes[place].set_ylim(0.3, 1.02)
    for unused in axes[len(played) :]:
        unused.set_visible(False)
    figure.supxlabel("trials")
    figure.supylabel("best so far, as a share of the set's best")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=6)
    figure.savefig(PICTURE)


if __name__ == "__main__":
    main()

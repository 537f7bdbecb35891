"""Play search strategies on the recorded sets: `make bench-search`. No clock is involved.

Each strategy plays each set with 20 seeds. How many trials it takes to come within 5% of the best
goes to `benchmarks/results/search.json`, best-so-far curves with bands to `docs/search.png`; what
they say is told in `docs/search.md`. What was played already is kept, unless `--again` is given.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks import RESULTS
from benchmarks.report import commit
from tuner.cost_model import stored_model
from tuner.cost_model.boosting import STORE_TREES, boost
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.replay.packaged import ROWS, packaged_sets, thinned
from tuner.replay.play import play, trials_to
from tuner.replay.recorded_set import RecordedSet
from tuner.search.make import PROPOSERS
from tuner.search.searcher import Searcher

FILE = RESULTS / "search.json"
PICTURE = Path(__file__).parents[1] / "docs" / "search.png"
NUM_SEEDS = 20
TRIALS = 128
SHARE = 0.95
LEAST = 100
"""Candidates of a set that is searched: the first round covers those with a handful."""
QUARTILES = (0.25, 0.5, 0.75)
TRAINED = "evolutionary, trained"
"""With a model that was trained on the sets of all other operators. Plain "evolutionary" learns
from what it measures only, and the others have no model."""
LABELS = ("random", "exhaustive", "annealing", "local", "evolutionary", TRAINED)
COLORS = ("gray", "tan", "tab:green", "tab:purple", "tab:blue", "tab:red")


def main() -> None:
    """Play, print a table, and draw curves."""
    parser = argparse.ArgumentParser(prog="make bench-search", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SET", help="sets to play; by default all")
    parser.add_argument("--again", action="store_true", help="play what was played already")
    args = parser.parse_args()
    every = read_sets(FOLDER)
    played = json.loads(FILE.read_text()) if FILE.exists() else {}
    for recorded in every:
        is_wanted = len(recorded) >= LEAST and (not args.names or recorded.name in args.names)
        if is_wanted and (args.again or recorded.name not in played):
            played[recorded.name] = _play_all(recorded, every)
            FILE.write_text(json.dumps(dict(sorted(played.items())), indent=1) + "\n")
    _print(played)
    _draw(played)


def _play_all(recorded: RecordedSet, every: list[RecordedSet]) -> dict[str, Any]:
    """Return what each strategy reached on a set, and what the set is."""
    strategies = {}
    for label, make in _makers(recorded, every).items():
        curves = np.array([play(recorded, make(seed), TRIALS) for seed in range(NUM_SEEDS)])
        reached = [trials_to(curve, SHARE) for curve in curves]
        strategies[label] = {
            "trials": [None if np.isinf(number) else int(number) for number in reached],
            "curves": np.quantile(curves, QUARTILES, axis=0).round(4).tolist(),
        }
    near = sum(secs <= recorded.best_secs / SHARE for secs in recorded.by_point.values())
    return {
        "candidates": len(recorded),
        "within_5_percent": near,
        "repeated_within": recorded.provenance["median_spread"],
        "commit": commit(),
        "strategies": strategies,
    }


def _makers(
    recorded: RecordedSet, every: list[RecordedSet]
) -> dict[str, Callable[[int], Searcher]]:
    others = [each.samples() for each in every if each.operator != recorded.operator]
    base = stored_model.encode(boost(others, 0, STORE_TREES))

    def maker(label: str) -> Callable[[int], Searcher]:
        name = "evolutionary" if label == TRAINED else label

        def make(seed: int) -> Searcher:
            model = XGBoostModel(seed, base=base if label == TRAINED else None)
            has_model = name == "evolutionary"
            return Searcher(
                PROPOSERS[name](),
                recorded.space,
                seed,
                model if has_model else None,
                task_key=recorded.task.key,
            )

        return make

    return {label: maker(label) for label in LABELS}


def _median(trials: list[int | None]) -> float:
    """Return the median number of trials; a search that never got there is infinite."""
    return float(np.median([np.inf if number is None else number for number in trials]))


def _print(played: dict[str, Any]) -> None:
    table = Table(title=f"median trials to {SHARE:.0%} of the best", box=SIMPLE_HEAD)
    for name in ("set", "candidates", "near best", *LABELS, "trained / random"):
        table.add_column(name, justify="left" if name == "set" else "right")
    for name, found in played.items():
        medians = [_median(found["strategies"][label]["trials"]) for label in LABELS]
        cells = [f"{median:g}" for median in medians]
        ratio = f"{medians[-1] / medians[0]:.2f}"
        table.add_row(name, str(found["candidates"]), str(found["within_5_percent"]), *cells, ratio)
    Console(width=160).print(table)


def _draw(played: dict[str, Any]) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - of the extra `bench`

    columns = 3
    rows = -(-len(played) // columns)
    figure = Figure(figsize=(4.2 * columns, 2.9 * rows), layout="constrained")
    axes = np.atleast_2d(figure.subplots(rows, columns, sharex=True, sharey=True)).ravel()
    for place, (name, found) in enumerate(played.items()):
        for label, color in zip(LABELS, COLORS, strict=True):
            low, middle, high = (np.array(c) for c in found["strategies"][label]["curves"])
            trials = np.arange(1, len(middle))
            axes[place].plot(trials, middle[1:], color=color, label=label, linewidth=1.4)
            axes[place].fill_between(trials, low[1:], high[1:], color=color, alpha=0.15)
        axes[place].set_title(name, fontsize=9)
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

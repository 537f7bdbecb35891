"""Score our strategies beside those of Kernel Tuner, on spaces that others measured whole.

`HUB` is a checkout of the public repository AutoTuningAssociation/benchmark_hub with its cache
files decompressed (`gunzip -k`). The score of a strategy is that of the methodology
`autotuning_methodology`: 0 for random search, 1 for one that finds the best at once, on the mean
over time until random search reaches 95%.

    python -m benchmarks.peers setup kernel-tuner
    python -m benchmarks.kernel_tuner HUB --repeats 8
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.environments import environment_python, environment_variables
from benchmarks.report import Metric, report

ENVIRONMENT = "kernel-tuner"
OURS = ("loopwright-evolutionary", "loopwright-annealing", "loopwright-local", "loopwright-random")
THEIRS = (
    "hybrid_vndx",
    "adaptive_tabu_greywolf",
    "genetic_algorithm",
    "pso",
    "diff_evo",
    "simulated_annealing",
    "dual_annealing",
    "firefly_algorithm",
    "greedy_ils",
    "random_sample",
)
CHOSEN_ON = ("A100", "A4000", "MI250X")
"""The GPUs of the methodology's default experiment. Settings may be chosen on these alone."""
CHECKED_ON = ("A6000", "W6600", "W7800")
GOAL = 0.10
"""How much our score should exceed the best of theirs."""


@dataclass(frozen=True)
class Experiment:
    """All strategies on one space, with one seed."""

    application: str
    gpu: str
    seed: int


def main() -> None:
    """Run the experiments, and report the means."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel_tuner", description=__doc__)
    parser.add_argument("hub", type=Path)
    parser.add_argument("--application", action="append", help="default: all in HUB")
    parser.add_argument("--gpu", action="append", help="default: all in HUB")
    parser.add_argument("--strategy", action="append", help="default: all")
    parser.add_argument("--repeats", type=int, default=8, help="searches of a strategy and seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    args = parser.parse_args()
    python = environment_python(ENVIRONMENT)
    if not python.exists():
        sys.exit(f"not installed: `python -m benchmarks.peers setup {ENVIRONMENT}` makes {python}")
    experiments = [
        Experiment(application, gpu, seed)
        for application, gpu in _spaces(args.hub)
        if application in (args.application or [application]) and gpu in (args.gpu or [gpu])
        for seed in range(args.seeds)
    ]
    if not experiments:
        sys.exit(f"no such cache: expected files such as {args.hub}/cachefiles/KERNEL/GPU_T4.json")
    strategies = args.strategy or [*OURS, *THEIRS]
    with ThreadPoolExecutor(args.jobs) as pool:
        scores = list(
            pool.map(lambda each: _scores(args.hub, each, strategies, args.repeats), experiments)
        )
    report("kernel_tuner", list(_metrics(experiments, scores, strategies)))


def _spaces(hub: Path) -> list[tuple[str, str]]:
    """Return the applications and GPUs whose measurements are there."""
    suffix = "_T4.json"
    paths = sorted((hub / "cachefiles").glob(f"*/*{suffix}"))
    return [(path.parent.name, path.name.removesuffix(suffix)) for path in paths]


def _scores(
    hub: Path, experiment: Experiment, strategies: Sequence[str], repeats: int
) -> dict[str, float]:
    """Return the score of each strategy on one space."""
    settings = {
        "strategies": list(strategies),
        "application": experiment.application,
        "gpus": [experiment.gpu],
        "repeats": repeats,
        "seed": experiment.seed,
    }
    with tempfile.TemporaryDirectory() as folder:
        command = [str(environment_python(ENVIRONMENT)), "-m", "benchmarks.kernel_tuner.score"]
        ran = subprocess.run(
            [*command, str(hub), folder, json.dumps(settings)],
            env={**environment_variables(1), "MPLBACKEND": "agg"},
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode != 0:
        sys.exit(f"{experiment}: the experiment failed\n{ran.stderr[-2000:]}")
    scores: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    print(experiment, scores, flush=True)
    return scores


def _metrics(
    experiments: Sequence[Experiment],
    scores: Sequence[dict[str, float]],
    strategies: Sequence[str],
) -> Iterator[Metric]:
    """Yield the mean scores over spaces, a sample a seed."""
    for title, gpus in (("chosen on", CHOSEN_ON), ("checked on", CHECKED_ON)):
        by_seed: dict[int, list[dict[str, float]]] = defaultdict(list)
        for each, found in zip(experiments, scores, strict=True):
            if each.gpu in gpus:
                by_seed[each.seed].append(found)
        if not by_seed:
            continue
        means = {
            name: tuple(statistics.fmean(each[name] for each in own) for own in by_seed.values())
            for name in strategies
        }
        theirs = [statistics.median(means[name]) for name in means if name in THEIRS]
        goal = f">= {max(theirs) + GOAL:.3f}" if theirs else ""
        for name, values in means.items():
            yield Metric(f"{title}, {name}", "", values, goal=goal if name == OURS[0] else "")


if __name__ == "__main__":
    main()

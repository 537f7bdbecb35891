"""Score strategies by Kernel Tuner's methodology; runs in the environment `kernel-tuner`.

    python -m benchmarks.kernel_tuner.score HUB FOLDER SETTINGS

`SETTINGS` is a JSON object with `strategies`, `application`, `gpus`, `repeats` and `seed`. The last
line of the output is a JSON object of scores by strategy.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
from autotuning_methodology.experiments import generate_experiment_file
from autotuning_methodology.report_experiments import get_strategy_scores

OPTIMIZER = Path(__file__).with_name("optimizer.py")
OURS = "loopwright-"
"""The beginning of the names of our strategies."""


def main() -> None:
    """Run one experiment, and print the scores."""
    hub, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    settings = json.loads(sys.argv[3])
    random.seed(settings["seed"])
    np.random.seed(settings["seed"])
    os.chdir(folder)
    application = settings["application"]
    experiment = generate_experiment_file(
        "experiment",
        folder,
        [_strategy(name) for name in settings["strategies"]],
        applications=[
            {
                "name": application,
                "folder": str(hub / "kernels"),
                "input_file": f"{application}.json",
                "objective_performance_keys": [_objective(application)],
            }
        ],
        gpus=settings["gpus"],
        override={
            "experimental_groups_defaults": {
                "repeats": settings["repeats"],
                "pattern_for_full_search_space_filenames": {
                    "regex": f"{hub}/cachefiles/${{applications}}/${{gpus}}_T4.json"
                },
            }
        },
        overwrite_existing_file=True,
    )
    scores = get_strategy_scores(str(experiment), full_validate_on_load=False)
    print(json.dumps({name: float(found["score"]) for name, found in scores.items()}))


def _objective(application: str) -> str:
    """Return what is optimized, as in the methodology's own defaults."""
    return "GFLOP/s" if application == "hotspot_milo" else "time"


def _strategy(name: str) -> dict[str, Any]:
    """Return a strategy of Kernel Tuner, or one of ours by `OURS` and its name."""
    described = {
        "name": name,
        "search_method": name,
        "display_name": name,
        "autotuner": "KernelTuner",
    }
    if not name.startswith(OURS):
        return described
    return {
        **described,
        "search_method": "Loopwright",
        "custom_search_method_path": str(OPTIMIZER),
        "search_method_hyperparameters": [
            {"name": "strategy", "value": name.removeprefix(OURS)},
        ],
    }


if __name__ == "__main__":
    main()

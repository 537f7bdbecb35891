"""Train the base model of the packaged sets: `python -m benchmarks.tuner.train_base`.

It is stored beside them, and has to be made anew when a set, a feature or a setting changes.
"""

from __future__ import annotations

from tuner.replay.base_model import PACKAGED, write_packaged


def main() -> None:
    """Train and store the model."""
    trained = write_packaged()
    size = f"{PACKAGED.stat().st_size >> 10} KiB"
    print(f"{trained.num_samples} samples of {trained.num_tasks} tasks: {PACKAGED.name}, {size}")


if __name__ == "__main__":
    main()

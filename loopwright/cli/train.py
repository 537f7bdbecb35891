"""`loopwright train`: train a cost model on all measurements of a database."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from compiler.target.target import Target
from loopwright.cli.shared.options import JsonOption, TargetOption
from loopwright.cli.shared.output import console, err_console, facts, print_json, print_table
from loopwright.errors import LoopwrightError
from service.learning import training
from service.store import cost_models
from service.store.database.database import open_database
from tuner.cost_model.cost_model import CostModelError
from tuner.cost_model.quality import Quality
from tuner.cost_model.training import Trained


def train(
    db: Annotated[str, typer.Option(help="Database URL.")] = "sqlite:///loopwright.db",
    target: TargetOption = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Train a cost model on all measurements of a database, for one kind of target.

    The packaged measurements of Loopwright are included; those of another kind of target weigh
    less.

    New jobs of that kind start with the newest model. A running server trains automatically. The
    table shows how well the model ranks the candidates of held-out tasks.
    """
    label = Target(target).timing_label
    with closing(open_database(db, must_exist=True)) as database:
        with database.read() as session, err_console.status("") as status:
            try:
                trained = training.train_on_store(
                    session,
                    label,
                    extra_samples=training.packaged_for(label),
                    on_progress=lambda step: status.update(f"[dim]{escape(step)}[/]"),
                )
            except CostModelError as error:
                raise LoopwrightError(str(error)) from error
        row = training.keep(database, label, trained)
        if as_json:
            print_json(cost_models.read(row))
            return
    print_table(_table(trained))
    console.print(
        facts(
            {
                "cost model": f"version {row.version} for {label}",
                "trained on": f"{trained.num_samples} measurements of {trained.num_tasks} task(s)",
                "skipped": f"{trained.num_skipped} of schedules that this version cannot replay",
                "data": trained.fingerprint[:16],
            }
        )
    )


def _table(trained: Trained) -> Table:
    table = Table("held-out task", "pairwise", "top-1", "top-5", "trials saved")
    for key, quality in trained.by_task.items():
        workload, _, target_name = key.partition("@")
        table.add_row(f"{workload[:12]} {target_name}", *_cells(quality))
    table.add_row("mean", *_cells(trained.quality))
    for name, words in (("operator", "without its operator"), ("cpu", "without this target")):
        table.add_row(f"mean, {words}", *_cells(trained.by_split.get(name)))
    return table


def _cells(quality: Quality | None) -> tuple[str, ...]:
    if quality is None:
        return ("-",) * 4
    return (
        f"{quality.pairwise:.3f}",
        f"{quality.top1:.3f}",
        f"{quality.top5:.3f}",
        f"{quality.trials_saved:.0f}",
    )

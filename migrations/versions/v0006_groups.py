"""Groups of jobs, priorities, and jobs that are resumed after their end."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_KEPT = (
    "job_id, number, outcome, run_secs, low_secs, high_secs, rounds, error, message, workers, "
    "toolchain, created_at"
)


def upgrade() -> None:
    """Add the columns and the table; finals get the number of their comparison."""
    op.create_table(
        "groups",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("trials", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_groups"),
    )
    for column in _added():
        op.add_column("jobs", column)
    op.create_index("ix_jobs_group_id", "jobs", ["group_id"])
    op.execute("UPDATE jobs SET num_finishes = 1 WHERE id IN (SELECT job_id FROM finals)")
    # SQLite cannot change a primary key in place.
    _replace_finals(
        sa.Column("finish", sa.Integer(), autoincrement=False, nullable=False),
        f"INSERT INTO finals_new (finish, {_KEPT}) SELECT 1, {_KEPT} FROM finals",
    )


def downgrade() -> None:
    """Go back, with the last finish of each job alone."""
    _replace_finals(
        None,
        f"INSERT INTO finals_new ({_KEPT}) SELECT {_KEPT} FROM finals WHERE finish = "
        "(SELECT num_finishes FROM jobs WHERE jobs.id = finals.job_id)",
    )
    op.drop_index("ix_jobs_group_id", table_name="jobs")
    for column in _added():
        op.drop_column("jobs", column.name)
    op.drop_table("groups")


def _added() -> list[sa.Column[Any]]:
    return [
        sa.Column("priority", sa.Integer(), nullable=False, server_default=sa.text("0")),
        # A foreign key cannot be added to an existing table of SQLite.
        sa.Column("group_id", sa.Uuid()),
        sa.Column("weight", sa.Double(), nullable=False, server_default=sa.text("1")),
        sa.Column("stop_requested", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("plateau_from", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("num_finishes", sa.Integer(), nullable=False, server_default=sa.text("0")),
    ]


def _replace_finals(finish: sa.Column[int] | None, copy: str) -> None:
    key = [*([] if finish is None else ["finish"]), "number"]
    op.create_table(
        "finals_new",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        *([] if finish is None else [finish]),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("outcome", sa.String(32), nullable=False),
        sa.Column("run_secs", sa.Double()),
        sa.Column("low_secs", sa.Double()),
        sa.Column("high_secs", sa.Double()),
        sa.Column("rounds", sa.JSON(), nullable=False),
        sa.Column("error", sa.String(32)),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("workers", sa.JSON(), nullable=False),
        sa.Column("toolchain", sa.String(255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id", "number"],
            ["trials.job_id", "trials.number"],
            name="fk_finals_job_id_number",
        ),
        sa.PrimaryKeyConstraint(
            "job_id", *key, name="pk_finals" if finish is None else "pk_finals_finish"
        ),
    )
    op.execute(copy)
    op.drop_table("finals")
    op.rename_table("finals_new", "finals")

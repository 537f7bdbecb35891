"""Cost models of the whole store: without a job, but with tasks and a fingerprint of the data."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_KEPT = "id, label, version, job_id, feature_version, trained_on, quality, blob, created_at"


def upgrade() -> None:
    """Relax a column, and add others; SQLite cannot do so in place and gets a new table."""
    _replace(
        is_nullable=True,
        added=(
            sa.Column("num_tasks", sa.Integer(), nullable=False, server_default=sa.text("1")),
            sa.Column("fingerprint", sa.String(64)),
        ),
        kept="SELECT " + _KEPT + " FROM cost_models",
    )


def downgrade() -> None:
    """Go back, without the models that belong to no job."""
    _replace(
        is_nullable=False,
        added=(),
        kept="SELECT " + _KEPT + " FROM cost_models WHERE job_id IS NOT NULL",
    )


def _change_in_place(
    *, is_nullable: bool, added: tuple[sa.Column[int] | sa.Column[str], ...]
) -> None:
    if not is_nullable:
        op.execute("DELETE FROM cost_models WHERE job_id IS NULL")
        op.drop_column("cost_models", "fingerprint")
        op.drop_column("cost_models", "num_tasks")
    op.alter_column("cost_models", "job_id", nullable=is_nullable)
    for column in added:
        op.add_column("cost_models", column)


def _replace(
    *, is_nullable: bool, added: tuple[sa.Column[int] | sa.Column[str], ...], kept: str
) -> None:
    # A job that started with a model continues without it: its trials contain the same knowledge.
    op.execute("UPDATE warm_starts SET cost_model_id = NULL")
    if op.get_bind().dialect.name != "sqlite":
        _change_in_place(is_nullable=is_nullable, added=added)
        return
    op.create_table(
        "cost_models_new",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(255), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=is_nullable),
        sa.Column("feature_version", sa.Integer(), nullable=False),
        sa.Column("trained_on", sa.Integer(), nullable=False),
        sa.Column("quality", sa.JSON(), nullable=False),
        sa.Column("blob", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        *added,
        sa.PrimaryKeyConstraint("id", name="pk_cost_models"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_cost_models_job_id_jobs"),
        sa.UniqueConstraint("job_id", name="uq_cost_models_job_id"),
        sa.UniqueConstraint("label", "version", name="uq_cost_models_label_version"),
    )
    op.execute(f"INSERT INTO cost_models_new ({_KEPT}) {kept}")
    op.drop_table("cost_models")
    op.rename_table("cost_models_new", "cost_models")

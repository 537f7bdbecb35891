"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)
# SQLite increments ids automatically only in a column of exactly this type.
_EVENT_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "targets",
        sa.Column("name", sa.String(1000), nullable=False),
        sa.Column("label", sa.String(255), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_targets"),
    )
    op.create_index("ix_targets_label", "targets", ["label"])
    op.create_table(
        "workers",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("label", sa.String(255), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("last_seen_at", _MOMENT, nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_workers"),
    )
    op.create_table(
        "workloads",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("script", sa.Text(), nullable=False),
        sa.Column("flops", sa.BigInteger(), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_workloads"),
    )
    op.create_table(
        "artifacts",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("workload_key", sa.String(64), nullable=False),
        sa.Column("target", sa.String(1000), nullable=False),
        sa.Column("toolchain", sa.String(255), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["target"], ["targets.name"], name="fk_artifacts_target"),
        sa.ForeignKeyConstraint(
            ["workload_key"], ["workloads.key"], name="fk_artifacts_workload_key"
        ),
        sa.PrimaryKeyConstraint("key", name="pk_artifacts"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("workload_key", sa.String(64), nullable=False),
        sa.Column("workload_name", sa.String(255), nullable=False),
        sa.Column("target", sa.String(1000), nullable=False),
        sa.Column("trials", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("strategy", sa.String(32), nullable=False),
        sa.Column("num_measured", sa.Integer(), nullable=False),
        sa.Column("best_secs", sa.Double()),
        sa.Column("default_secs", sa.Double()),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("started_at", _MOMENT),
        sa.Column("finished_at", _MOMENT),
        sa.Column("error", sa.Text()),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("owner", sa.String(255)),
        sa.Column("lease_until", _MOMENT),
        sa.Column("fruitless_claims", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["target"], ["targets.name"], name="fk_jobs_target"),
        sa.ForeignKeyConstraint(["workload_key"], ["workloads.key"], name="fk_jobs_workload_key"),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_created_at_id", "jobs", ["created_at", "id"])
    op.create_index("ix_jobs_state_created_at", "jobs", ["state", "created_at"])
    op.create_table(
        "events",
        sa.Column("id", _EVENT_ID, autoincrement=True, nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("at", _MOMENT, nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_events_job_id"),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_job_id_id", "events", ["job_id", "id"])
    op.create_table(
        "idempotency_keys",
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("request_sha256", sa.String(64), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_idempotency_keys_job_id"),
        sa.PrimaryKeyConstraint("key", name="pk_idempotency_keys"),
    )
    op.create_table(
        "trials",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("candidate_key", sa.String(64), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("sketch", sa.String(255), nullable=False),
        sa.Column("trace", sa.JSON(), nullable=False),
        sa.Column("predicted", sa.Double()),
        sa.Column("error", sa.String(32)),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("run_secs", sa.JSON(), nullable=False),
        sa.Column("best_secs", sa.Double()),
        sa.Column("max_error", sa.Double()),
        sa.Column("build_secs", sa.Double(), nullable=False),
        sa.Column("check_secs", sa.Double(), nullable=False),
        sa.Column("time_secs", sa.Double(), nullable=False),
        sa.Column("worker", sa.String(255), nullable=False),
        sa.Column("toolchain", sa.String(255), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_trials_job_id"),
        sa.PrimaryKeyConstraint("job_id", "number", name="pk_trials"),
        sa.UniqueConstraint("job_id", "candidate_key", name="uq_trials_job_id_candidate_key"),
    )
    op.create_table(
        "best_schedules",
        sa.Column("workload_key", sa.String(64), nullable=False),
        sa.Column("target", sa.String(1000), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("trial_number", sa.Integer(), nullable=False),
        sa.Column("run_secs", sa.Double(), nullable=False),
        sa.Column("updated_at", _MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id", "trial_number"],
            ["trials.job_id", "trials.number"],
            name="fk_best_schedules_job_id_trial_number",
        ),
        sa.ForeignKeyConstraint(["target"], ["targets.name"], name="fk_best_schedules_target"),
        sa.ForeignKeyConstraint(
            ["workload_key"], ["workloads.key"], name="fk_best_schedules_workload_key"
        ),
        sa.PrimaryKeyConstraint("workload_key", "target", name="pk_best_schedules"),
    )
    op.create_table(
        "cost_models",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(255), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("feature_version", sa.Integer(), nullable=False),
        sa.Column("trained_on", sa.Integer(), nullable=False),
        sa.Column("quality", sa.JSON(), nullable=False),
        sa.Column("blob", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cost_models"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_cost_models_job_id_jobs"),
        sa.UniqueConstraint("job_id", name="uq_cost_models_job_id"),
        sa.UniqueConstraint("label", "version", name="uq_cost_models_label_version"),
    )


def downgrade() -> None:
    """Drop all tables, the referring ones first."""
    op.drop_table("cost_models")
    op.drop_table("best_schedules")
    op.drop_table("trials")
    op.drop_table("idempotency_keys")
    op.drop_index("ix_events_job_id_id", table_name="events")
    op.drop_table("events")
    op.drop_index("ix_jobs_state_created_at", table_name="jobs")
    op.drop_index("ix_jobs_created_at_id", table_name="jobs")
    op.drop_table("jobs")
    op.drop_table("artifacts")
    op.drop_table("workloads")
    op.drop_table("workers")
    op.drop_index("ix_targets_label", table_name="targets")
    op.drop_table("targets")

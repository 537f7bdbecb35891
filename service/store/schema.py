"""All tables in one place, for users of the whole schema."""

from __future__ import annotations

from sqlalchemy import MetaData

from service.store import (
    artifacts,
    cache_entries,
    cost_models,
    models,
    shapes,
    targets,
    tokens,
    warm_starts,
    webhooks,
    worker_samples,
    workers,
    workloads,
)
from service.store.database.base import Base
from service.store.jobs import baselines, events, groups, idempotency, jobs
from service.store.results import best_schedules, finals
from service.store.trials import sketches, trial_chunks, trials

ROWS = (
    workloads.WorkloadRow,
    targets.TargetRow,
    jobs.JobRow,
    groups.GroupRow,
    models.ModelRow,
    models.ModelTaskRow,
    shapes.ShapesRow,
    shapes.ShapeSizeRow,
    shapes.ShapeTimingRow,
    trials.TrialRow,
    trial_chunks.PackedTrialsRow,
    sketches.SketchRow,
    best_schedules.BestScheduleRow,
    finals.FinalRow,
    baselines.BaselineRow,
    events.EventRow,
    cost_models.CostModelRow,
    warm_starts.WarmStartRow,
    warm_starts.WarmCandidateRow,
    workers.WorkerRow,
    worker_samples.WorkerSampleRow,
    idempotency.IdempotencyKeyRow,
    artifacts.ArtifactRow,
    cache_entries.CacheEntryRow,
    tokens.TokenRow,
    webhooks.WebhookRow,
    webhooks.WebhookEventRow,
)
METADATA: MetaData = Base.metadata

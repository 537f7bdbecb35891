"""Idempotency keys."""

from __future__ import annotations

import pytest

from service.common.errors import UnprocessableError
from service.store.database.database import Database
from service.store.jobs import idempotency
from tests.service_fixtures import add_job

pytestmark = pytest.mark.on_both_databases


def test_a_key_recalls_its_job_for_its_token_and_its_request(database: Database) -> None:
    job_id = add_job(database)
    with database.write() as session:
        idempotency.remember(session, "ann", "key", "a" * 64, job_id)
        idempotency.remember(session, None, "open", "a" * 64, job_id)
    with database.read() as session:
        assert idempotency.recall(session, "ann", "key", ["a" * 64]) == job_id
        assert idempotency.recall(session, None, "open", ["a" * 64]) == job_id
        assert idempotency.recall(session, "bob", "key", ["a" * 64]) is None
        assert idempotency.recall(session, None, "key", ["a" * 64]) is None
        with pytest.raises(UnprocessableError, match=str(job_id)):
            idempotency.recall(session, "ann", "key", ["b" * 64])

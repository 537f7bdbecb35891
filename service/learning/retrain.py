"""Retrain the cost models in the background as measurements arrive.

Training runs in a child process of the lowest priority, one at a time and seldom. No job waits for
it or depends on it.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import suppress
from threading import Lock, Thread

import structlog

from service.learning import retrain_child, training
from service.store.database.base import utc_now
from service.store.database.database import Database
from tuner.cost_model.training import Trained

MIN_NEW_TRIALS = 128
"""Number of trials since the newest model that starts a training. Eight rounds: fresh models
against time for training. Chosen.
"""
MIN_PAUSE_SECS = 600.0
"""Minimum interval between two trainings for a kind of target, by any coordinator. One of three
tasks takes 50 s of a core of a Zen 5: its models of held-out tasks learn from all recorded sets.
Chosen: a tenth of a core at most.
"""
TIMEOUT_SECS = 900.0
"""Time limit of a training at the lowest priority. Chosen."""
NICENESS = 19
"""Niceness of the child: the lowest priority of Linux, so that measurements have precedence."""

_MEMORY_BYTES = 4 << 30
"""Limit of the child's address space. Chosen."""
_log = structlog.get_logger()


class Retrainer:
    """Trains for one kind of target at a time, if it has enough new measurements.

    Args:
        min_new_trials: Number of measurements since the newest model that justify a new one.
        min_pause_secs: Minimum interval between the starts of two trainings for a kind of target
            here, and after its newest model, whichever process trained it.
        with_packaged: Whether to train on the packaged measurements too.
    """

    def __init__(
        self,
        database: Database,
        *,
        min_new_trials: int = MIN_NEW_TRIALS,
        min_pause_secs: float = MIN_PAUSE_SECS,
        with_packaged: bool = True,
    ) -> None:
        self._database = database
        self._min_new_trials = min_new_trials
        self._min_pause_secs = min_pause_secs
        self._with_packaged = with_packaged
        self._lock = Lock()
        self._started_at: dict[str, float] = {}  # of the last training for each kind of target
        self._thread: Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def offer(self, label: str) -> bool:
        """Start a training for a kind of target if it is due; return whether one started."""
        with self._lock:
            now = time.monotonic()
            is_running = self._thread is not None and self._thread.is_alive()
            last = self._started_at.get(label, -math.inf)
            if self._is_stopped or is_running or now - last < self._min_pause_secs:
                return False
            with self._database.read() as session:
                trained_at = training.trained_at(session, label)
                if trained_at is not None and (
                    (utc_now() - trained_at).total_seconds() < self._min_pause_secs
                ):
                    return False
                if training.num_new_trials(session, label) < self._min_new_trials:
                    return False
            self._started_at[label] = now
            # A daemon thread: the child dies with the thread that started it.
            self._thread = Thread(target=self._run, args=(label,), name="retraining", daemon=True)
            self._thread.start()
            return True

    def wait(self, timeout_secs: float) -> bool:
        """Wait for the current training; return whether none is left."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout_secs)
        return thread is None or not thread.is_alive()

    def stop(self) -> None:
        """Cancel the current training, and start no other."""
        with self._lock:
            self._is_stopped = True
            child = self._child
        if child is not None:
            with suppress(ProcessLookupError):
                child.kill()
        self.wait(5.0)

    def _run(self, label: str) -> None:
        try:
            trained = self._trained(label)
            if trained is not None:
                row = training.keep(self._database, label, trained)
                _log.info(
                    "cost model trained",
                    label=label,
                    version=row.version,
                    tasks=row.num_tasks,
                    trained_on=row.trained_on,
                )
        except Exception:
            # Jobs continue with the existing model.
            _log.exception("cost model not trained", label=label)

    def _trained(self, label: str) -> Trained | None:
        """Return the model of the child; None without training data, or if it was stopped."""
        request = {
            "db_url": self._database.url,
            "label": label,
            "with_packaged": self._with_packaged,
            "niceness": NICENESS,
            "memory_bytes": _MEMORY_BYTES,
            "parent": os.getpid(),
        }
        with self._lock:
            if self._is_stopped:
                return None
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", retrain_child.__name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # The child has our module path, without the working directory.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        with self._child as child:
            try:
                answer, reason = child.communicate(json.dumps(request).encode(), TIMEOUT_SECS)
            finally:
                child.kill()
        words = reason.decode(errors="replace").strip()
        if child.returncode == 0:
            # Safe to load: our own child wrote it from our own database.
            trained = pickle.loads(answer)
            assert isinstance(trained, Trained)
            return trained
        if child.returncode == retrain_child.NOTHING or self._is_stopped:
            _log.info("no cost model trained", label=label, reason=words)
            return None
        died = child.returncode == -signal.SIGKILL
        last = words.splitlines()[-1] if words else "no message"
        raise RuntimeError(f"the training {'was killed' if died else 'failed'}: {last}")

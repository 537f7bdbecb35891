"""The messages about batches between coordinators, the scheduler and workers.

They are plain values in the streams that Dask keeps open between these processes, in order. Nothing
in them is pickled.

    coordinator -> scheduler    SUBMIT a batch, DROP batches, CHECK which batches it lacks
    scheduler -> worker         RUN a batch, RECALL one that has not begun
    worker -> scheduler         ANSWER of a batch, RETURN of a recalled one
    scheduler -> coordinator    ANSWER or loss of a batch; SLOTS of all labels, also after a CHECK
"""

from __future__ import annotations

SUBMIT = "loopwright-submit"
DROP = "loopwright-drop"
CHECK = "loopwright-check"
RUN = "loopwright-run"
RECALL = "loopwright-recall"
RETURN = "loopwright-return"
ANSWER = "loopwright-answer"
SLOTS = "loopwright-slots"

FACTS = "loopwright"
"""The key of the facts that a worker reports."""
PROTOCOL = 1
"""The version of these messages; a worker reports it among its facts. Others get no batches."""

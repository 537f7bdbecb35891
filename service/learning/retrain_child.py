"""The child process that trains a cost model on the store, and writes it to stdout.

It has a low priority, so it must not write to the database: others would wait for its lock.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import sys
from contextlib import closing

from service.learning.training import packaged_for, train_on_store
from service.store.database.database import open_database
from tuner.cost_model.cost_model import CostModelError
from workers.child.parent_death import die_with_parent

NOTHING = 3
"""The exit code if the store has no training data."""


def main() -> int:
    """Train the model that stdin requests; return the exit code."""
    request = json.load(sys.stdin)
    die_with_parent(request["parent"])
    os.nice(request["niceness"])
    memory_bytes = request["memory_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    with closing(open_database(request["db_url"])) as database, database.read() as session:
        try:
            extra_samples = packaged_for(request["label"]) if request["with_packaged"] else []
            trained = train_on_store(session, request["label"], extra_samples=extra_samples)
        except CostModelError as error:
            sys.stderr.write(str(error))
            return NOTHING
    pickle.dump(trained, sys.stdout.buffer)
    return 0


if __name__ == "__main__":
    sys.exit(main())

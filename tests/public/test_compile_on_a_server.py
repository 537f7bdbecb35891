"""`lw.compile` with the address of a server."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from examples.serving import Server

GRAPH = lw.parse_graph("""
@R.function
def dense(x: R.Tensor((8, 24), "float32"), w: R.Tensor((24, 16), "float32")):
    with R.dataflow():
        product = R.matmul(x, w)
        y = R.nn.relu(product)
        R.output(y)
    return y
""")
TARGET = "cpu -num-cores=1"


def test_a_model_is_tuned_on_a_server_and_its_schedules_are_taken_from_there(
    server: Server,
) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.random((8, 24), np.float32), rng.random((24, 16), np.float32)
    with lw.Client(server.url) as client:
        before = {job.id for job in client.jobs()}
        for trials in (16, 16, 0):
            model = lw.compile(GRAPH, target=TARGET, trials=trials, url=server.url)
            np.testing.assert_allclose(model.run(x=x, w=w)["y"], np.maximum(x @ w, 0), rtol=1e-5)
            # The same call waits for the same jobs.
            [job] = [job for job in client.jobs() if job.id not in before]
            assert (job.num_measured, job.workload_name) == (16, "matmul_relu")

"""Tune a matrix product on a server and use the kernel; start one first: `loopwright serve`."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright import te

A = te.placeholder((512, 512), "float32", name="A")
B = te.placeholder((512, 512), "float32", name="B")
k = te.reduce_axis((0, 512), name="k")
C = te.compute((512, 512), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
func = te.create_prim_func([A, B, C])

try:
    with lw.Client() as client:  # LOOPWRIGHT_URL and LOOPWRIGHT_TOKEN, or port 8080 of this host
        job = client.tune(func, max_trials=100).wait()
        kernel = client.kernel(func)
except lw.ServerUnreachableError as error:
    raise SystemExit(f"{error}\nstart one in another terminal: loopwright serve") from None

a, b = np.random.rand(2, 512, 512).astype("float32")
c = np.empty((512, 512), "float32")
kernel(a, b, c)
np.testing.assert_allclose(c, a @ b, rtol=1e-4)
if job.speedup:
    print(f"{job.speedup:.0f} times as fast as the default schedule")

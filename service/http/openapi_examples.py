"""Examples of the wire models, by the name of the model, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

_JOB = "5f2b6c1e-8a52-4d3b-9f4e-2f1f6b7c9d10"
_MODEL = "c1f3a9d2-6b77-4f0e-a6b1-3f2d9e8c7a55"
_WEIGHTS = f'R.const("sha256:{"5b" * 32}", R.Tensor((512, 1000), "float32"))'
_GRAPH = f"""@R.function
def main(x: R.Tensor((1, 512), "float32")) -> R.Tensor((1, 1000), "float32"):
    with R.dataflow():
        h: R.Tensor((1, 1000), "float32") = R.matmul(x, {_WEIGHTS})
        y: R.Tensor((1, 1000), "float32") = R.nn.relu(h)
        R.output(y)
    return y
"""
_KEY = "08fac7a0dbb50da1ad4ff18803e9911ff3e3ac31e93da130f348ba714ced5b36"
_TARGET = "cpu -mcpu=znver3 -num-cores=1"
_MOMENT = "2026-11-21T17:32:31.270310Z"
_WORKLOAD = {"operator": "matmul:512,512,512:float32"}
_TRACE: dict[str, Any] = {"format": 2, "instructions": []}
_SEARCH = {"target": "cpu", "max_trials": 200, "seed": 0}
_KNOWN = {
    "key": _KEY,
    "name": "matmul",
    "flops": 268435456,
    "dtype": "float32",
    "operator_key": "5e132929ae856c9ea440f05da15870550121511eda338afc13e4e9a268316d06",
    "shape": {"blocks": [[512, 512, 512]], "factors": []},
    "created_at": _MOMENT,
}
_BASELINE = {
    "library": "numpy",
    "version": "NumPy 2.4.6, OpenBLAS 0.3.31",
    "run_secs": 0.00261,
    "kernel_secs": 0.00204,
    "speedup": 1.28,
    "interval": [1.27, 1.3],
    "kernel_set": "SkylakeX",
    "setting": "OPENBLAS_CORETYPE=SkylakeX, 1 thread",
    "tried": [
        {"name": "1 thread", "kernel_set": "Haswell", "secs": 0.0049},
        {
            "name": "OPENBLAS_CORETYPE=SkylakeX, 1 thread",
            "kernel_set": "SkylakeX",
            "secs": 0.00259,
        },
    ],
    "share_of_peak": 0.82,
    "is_below_cpu": False,
    "verdict": "faster",
}
_JOB_READ = {
    "id": _JOB,
    "state": "succeeded",
    "workload_key": _KEY,
    "workload_name": "matmul",
    "target": _TARGET,
    "max_trials": 200,
    "max_secs": None,
    "trials": 200,
    "seconds": None,
    "seed": 0,
    "strategy": "evolutionary",
    "num_measured": 200,
    "best_secs": 0.00203,
    "best_interval": [0.00202, 0.00204],
    "best_kind": "confirmed",
    "best_number": 137,
    "best_provisional_secs": 0.00198,
    "provisional_secs": 0.00198,
    "default_secs": 0.13739,
    "default_interval": [0.1371, 0.13762],
    "default_kind": "confirmed",
    "default_provisional_secs": 0.13702,
    "speedup": 67.7,
    "speedup_kind": "confirmed",
    "created_at": _MOMENT,
    "started_at": _MOMENT,
    "finished_at": "2026-11-21T17:32:44.784815Z",
    "shape": "512 x 512 x 512",
    "dtype": "float32",
    "flops": 268435456,
    "peak_flops": 1.1e11,
    "trials_per_sec": 14.8,
    "sparkline": [0.13739, 0.0113, 0.0028, 0.00203],
    "stop_reason": "budget",
    "error": None,
    "name": "first layer",
    "note": None,
    "tags": ["model:bert", "nightly"],
    "baseline": _BASELINE,
    "webhook": None,
    "window": None,
}

_MODEL_SUMMARY = {
    "id": _MODEL,
    "name": "resnet50",
    "target": _TARGET,
    "owner": "ci",
    "created_at": _MOMENT,
    "group_id": "0b5e8d55-93a4-4a0e-8d4c-0a5c3f7e2b11",
    "state": "succeeded",
    "num_tasks": 1,
    "num_steps": 1,
    "max_trials": 2000,
    "num_measured": 2000,
    "latency_secs": 0.00019,
    "default_secs": 0.0011,
}

EXAMPLES: dict[str, Any] = {
    "ShapesCreate": {
        "workload": {"operator": "matmul:M,512,512"},
        "ranges": {"M": [1, 512]},
        **_SEARCH,
    },
    "RemoteCreate": {"target": "cpu -mcpu=cortex-a72"},
    "RemoteCreated": {"id": "Ym9hcmQvd29ya2VyLTA.1f0c9a7e2b6d4853"},
    "BaselineRead": _BASELINE,
    "BestRead": {
        "workload_key": _KEY,
        "target": _TARGET,
        "run_secs": 0.00203,
        "interval": [0.00202, 0.00204],
        "kind": "confirmed",
        "provisional_secs": 0.00198,
        "default_secs": 0.13739,
        "default_interval": [0.1371, 0.13762],
        "default_kind": "confirmed",
        "default_provisional_secs": 0.13702,
        "speedup": 67.7,
        "speedup_kind": "confirmed",
        "trace": _TRACE,
        "job_id": _JOB,
        "trial_number": 137,
        "provenance": {"worker": "worker-0", "toolchain": "loopwright 0.1, llvm 20"},
        "baseline": _BASELINE,
    },
    "BestSummary": {
        "workload_key": _KEY,
        "workload_name": "matmul",
        "shape": "512 x 512 x 512",
        "dtype": "float32",
        "target": _TARGET,
        "run_secs": 0.00203,
        "interval": [0.00202, 0.00204],
        "kind": "confirmed",
        "provisional_secs": 0.00198,
        "default_secs": 0.13739,
        "default_interval": [0.1371, 0.13762],
        "default_kind": "confirmed",
        "default_provisional_secs": 0.13702,
        "speedup": 67.7,
        "speedup_kind": "confirmed",
        "flops": 268435456,
        "peak_flops": 1.1e11,
        "job_id": _JOB,
        "trial_number": 137,
        "toolchain": "loopwright 0.1, llvm 20",
        "worker": "worker-0",
        "created_at": _MOMENT,
        "baseline": _BASELINE,
    },
    "CheckRequest": {"workload": _WORKLOAD, "target": "cpu", "space": True},
    "Columns": {
        "number": [0, 1, 2],
        "secs": [0.4, 0.5, 0.55],
        "best_secs": [0.13739, 0.0113, None],
        "predicted": [None, 0.9, 0.7],
        "predicted_percentile": [None, 1.0, 0.0],
        "relative_speed": [None, 1.0, 0.0],
        "round": [0, 0, 0],
        "sketch": [0, 1, 1],
        "outcome": [0, 0, 1],
        "sketches": ["default", "packed_whole"],
        "outcomes": ["ok", "timeout"],
        "num_trials": 3,
        "is_thinned": False,
    },
    "Decisions": {
        "sketch": "packed_whole",
        "sketches": ["packed_whole"],
        "decisions": [{"name": "i of C, part 3", "values": [4.0, 6.0], "importance": 0.31}],
        "rows": [[6.0], [4.0]],
        "number": [1, 2],
        "best_secs": [0.0113, None],
        "num_trials": 2,
        "is_sampled": False,
    },
    "GroupChange": {"max_trials": 1000},
    "GroupCreate": {
        **_SEARCH,
        "tasks": [
            {"workload": _WORKLOAD, "weight": 4.0},
            {"workload": {"operator": "softmax:512,1000"}},
        ],
    },
    "JobChange": {"max_trials": 400, "priority": 1},
    "JobCreate": {**_SEARCH, "workload": _WORKLOAD},
    "JobRead": _JOB_READ,
    "ModelCreate": {
        **_SEARCH,
        "max_trials": 2000,
        "name": "resnet50",
        "model": {"graph": _GRAPH},
    },
    "ModelPackage": {
        "id": _MODEL,
        "target": _TARGET,
        "schedules": [
            {
                "workload_key": _KEY,
                "sketch": "packed_whole",
                "trace": _TRACE,
                "run_secs": 0.00203,
                "kind": "confirmed",
            }
        ],
    },
    "ModelRead": {
        **_MODEL_SUMMARY,
        "tasks": [
            {
                "number": 0,
                "workload_key": _KEY,
                "workload_name": "matmul_relu",
                "operators": "matmul+relu",
                "weight": 1.0,
                "shape": "1 x 1000 x 512",
                "dtype": "float32",
                "flops": 1024000,
                "size_bytes": 2054048,
                "job_id": _JOB,
                "state": "succeeded",
                "num_measured": 2000,
                "best_secs": 0.00019,
                "kind": "confirmed",
                "default_secs": 0.0011,
                "share": 1.0,
                "peak_share": 0.05,
                "next_gain": 1.2e-8,
            }
        ],
        "history": [{"at": _MOMENT, "latency_secs": 0.0011}],
        "steps": [{"name": "y", "task": 0, "after": []}],
    },
    "ModelSummary": _MODEL_SUMMARY,
    "Problem": {
        "type": "urn:loopwright:problem:invalid-target",
        "title": "Unprocessable Entity",
        "status": 422,
        "detail": "unknown CPU 'zen9' in target 'cpu -mcpu=zen9': did you mean 'znver3'?",
        "instance": "/api/v1/jobs",
        "errors": [{"detail": "unknown CPU 'zen9'", "pointer": "/target"}],
    },
    "ScheduleQuery": {"workload": _WORKLOAD, "target": "cpu"},
    "Summary": {
        "num_trials": 200,
        "failures": [
            {
                "kind": "timeout",
                "count": 3,
                "first_number": 17,
                "first_message": "the kernel did not finish within 0.5 s",
            }
        ],
        "sketches": [
            {"name": "packed_whole", "count": 199, "num_right": 196, "best_secs": 0.00203}
        ],
        "time": {
            "propose": 0.6,
            "build": 4.1,
            "check": 1.2,
            "time": 6.0,
            "finish": 1.5,
            "wait": 0.02,
        },
        "model": {
            "rank_correlation": 0.62,
            "top_quarter": 0.51,
            "num_trials": 168,
            "num_rounds": 11,
        },
        "model_origin": "measurements",
    },
    "TargetRead": {
        "name": _TARGET,
        "label": "cpu/znver3",
        "peak_flops": 1.1e11,
        "created_at": _MOMENT,
    },
    "TokenCreate": {"name": "ci", "scopes": ["submit"]},
    "TrialRead": {
        "number": 137,
        "sketch": "packed_whole",
        "trace": _TRACE,
        "error": None,
        "message": "",
        "run_secs": [0.00203, 0.00204],
        "max_error": 2.1e-7,
        "build_secs": 0.02,
        "check_secs": 0.006,
        "time_secs": 0.03,
        "worker": "worker-0",
        "predicted": 1.3,
        "created_at": _MOMENT,
    },
    "WorkloadCheck": {
        "key": _KEY,
        "name": "matmul",
        "operator_key": _KNOWN["operator_key"],
        "dtype": "float32",
        "target": _TARGET,
        "flops": 268435456,
        "bytes": 3145728,
        "parameters": [
            {
                "name": "A",
                "shape": [512, 512],
                "dtype": "float32",
                "role": "input",
                "bytes": 1048576,
            }
        ],
        "script": "@T.prim_func\ndef matmul(...): ...",
        "space": {"sketches": ["packed_whole"], "num_schedules": 267, "is_exact": True},
        "is_tuned": True,
    },
    "WorkloadRead": _KNOWN,
}


def add_examples(schemas: dict[str, Any]) -> None:
    """Add the examples to the schemas of a document, and an example page to each page model."""
    for name, schema in schemas.items():
        item = EXAMPLES.get(name.removeprefix("Page_").removesuffix("_"))
        if name in EXAMPLES:
            schema["examples"] = [EXAMPLES[name]]
        elif name.startswith("Page_") and item is not None:
            schema["examples"] = [{"items": [item], "next_cursor": None}]

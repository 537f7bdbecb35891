"""The threads of `parallel` loops: a launch starts them, runs the first part itself, and joins."""

from __future__ import annotations

LAUNCH = "lw_launch"

# One task record: function, begin, end, number, context.
_RUNTIME = """
%lw.task = type { ptr, i64, i64, i64, ptr }

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)

define internal void @lw_run(ptr %task) nounwind {
  %fn.slot = getelementptr %lw.task, ptr %task, i64 0, i32 0
  %begin.slot = getelementptr %lw.task, ptr %task, i64 0, i32 1
  %end.slot = getelementptr %lw.task, ptr %task, i64 0, i32 2
  %number.slot = getelementptr %lw.task, ptr %task, i64 0, i32 3
  %context.slot = getelementptr %lw.task, ptr %task, i64 0, i32 4
  %fn = load ptr, ptr %fn.slot
  %begin = load i64, ptr %begin.slot
  %end = load i64, ptr %end.slot
  %number = load i64, ptr %number.slot
  %context = load ptr, ptr %context.slot
  call void %fn(i64 %begin, i64 %end, i64 %number, ptr %context)
  ret void
}

define internal ptr @lw_thread(ptr %task) nounwind {
  call void @lw_run(ptr %task)
  ret ptr null
}

define internal void @lw_launch(ptr %fn, i64 %extent, ptr %context, i64 %threads) nounwind {
entry:
  %fewer = icmp ult i64 %extent, %threads
  %wanted = select i1 %fewer, i64 %extent, i64 %threads
  %none = icmp slt i64 %wanted, 1
  %count = select i1 %none, i64 1, i64 %wanted
  %tasks = alloca %lw.task, i64 %count, align 8
  %handles = alloca i64, i64 %count, align 8
  br label %start
start:
  %n = phi i64 [ 0, %entry ], [ %n.next, %started ]
  %n.next = add i64 %n, 1
  %low = mul i64 %n, %extent
  %high = mul i64 %n.next, %extent
  %begin = udiv i64 %low, %count
  %end = udiv i64 %high, %count
  %task = getelementptr %lw.task, ptr %tasks, i64 %n
  %fn.slot = getelementptr %lw.task, ptr %task, i64 0, i32 0
  %begin.slot = getelementptr %lw.task, ptr %task, i64 0, i32 1
  %end.slot = getelementptr %lw.task, ptr %task, i64 0, i32 2
  %number.slot = getelementptr %lw.task, ptr %task, i64 0, i32 3
  %context.slot = getelementptr %lw.task, ptr %task, i64 0, i32 4
  store ptr %fn, ptr %fn.slot
  store i64 %begin, ptr %begin.slot
  store i64 %end, ptr %end.slot
  store i64 %n, ptr %number.slot
  store ptr %context, ptr %context.slot
  %handle = getelementptr i64, ptr %handles, i64 %n
  store i64 0, ptr %handle
  %own = icmp eq i64 %n, 0
  br i1 %own, label %started, label %create
create:
  %status = call i32 @pthread_create(ptr %handle, ptr null, ptr @lw_thread, ptr %task)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %inline, label %started
inline:
  store i64 0, ptr %handle
  call void @lw_run(ptr %task)
  br label %started
started:
  %all = icmp eq i64 %n.next, %count
  br i1 %all, label %first, label %start
first:
  call void @lw_run(ptr %tasks)
  br label %join
join:
  %m = phi i64 [ 0, %first ], [ %m.next, %joined ]
  %m.next = add i64 %m, 1
  %waiting = getelementptr i64, ptr %handles, i64 %m
  %id = load i64, ptr %waiting
  %skip = icmp eq i64 %id, 0
  br i1 %skip, label %joined, label %wait
wait:
  %ignored = call i32 @pthread_join(i64 %id, ptr null)
  br label %joined
joined:
  %done = icmp eq i64 %m.next, %count
  br i1 %done, label %end.all, label %join
end.all:
  ret void
}
"""


def launch_runtime() -> str:
    """Return the functions that run a parallel loop, as LLVM IR."""
    return _RUNTIME

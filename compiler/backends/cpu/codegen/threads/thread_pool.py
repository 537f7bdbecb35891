"""The thread pool that parallel loops run on, as LLVM IR: one object in a process.

`lw_launch(fn, extent, context, threads)` runs `fn(begin, end, number, context)` over parts of
0, ..., extent - 1, on the caller's thread and on workers, and returns when all parts are done. Each
part has its own number below `threads`; the caller's is 0. Workers are started when they are first
needed, and live as long as the process.

A worker has a slot, which holds its task and one word, the state, through which worker and launch
communicate:

    IDLE     the worker spins on the state                 -> ASLEEP (worker), POSTED (launch)
    ASLEEP   the worker sleeps on a futex                  -> POSTED (launch, which wakes it)
    POSTED   a task is posted, and not begun               -> RUNNING (worker), IDLE (launch)
    RUNNING  the worker runs its task                      -> IDLE (worker), AWAITED (launch)
    AWAITED  as RUNNING, and the launch sleeps on a futex  -> IDLE (worker, which wakes it)

Example, a launch of two parts whose worker sleeps, on a busy machine:

    launch: ASLEEP -> POSTED, wakes the worker, runs part 0
    launch: POSTED -> IDLE, since the worker has not begun: runs part 1, too, and returns
    worker: wakes up, finds IDLE, spins

Both sides spin for SPIN_NANOS before they sleep, about as long as it takes to wake a thread whose
core is virtual and idle (on bare metal, a few microseconds). A launch that has run its own part
takes back the tasks that no worker has begun, and runs them itself. So it never waits for a thread
to wake up: if no core is free, a loop takes about as long as inline.

Memory order. Every hand-over is a read-modify-write of the state that releases the writes before it
and acquires those that the other side released. The task is written before POSTED and read after
RUNNING. Its results are written before IDLE, and read by the launch after it saw IDLE. On x86 it is
a locked instruction, which non-temporal stores do not pass either.
Only a POSTED task can be taken, and by one side, since both use compare-and-exchange. A sleeper is
never missed: it exchanges the state before it sleeps, so the other side's next exchange returns
that state, and the kernel lets no thread sleep on a word that has changed. A wake-up may be late
and reach the next sleeper of a slot, so a thread that wakes up reads the state again.

A slot belongs to the launch that has claimed it, from an acquiring to a releasing store. `busy`
counts the threads at work, callers and claimed workers; it guards no memory, so it is relaxed. A
launch claims no worker that would make `busy` exceed `cores`, or its own `threads`: a second caller
finds the first one's threads counted, and gets the remaining cores, if only its own.

Workers block all signals, so that the process's other threads handle them. A forked child inherits
the memory of the pool without its threads: `lw_reset` empties the pool there.
"""

from __future__ import annotations

# With the calling thread, as many as `compiler.target.cpu_options.MAX_CORES`.
MAX_WORKERS = 1023
# See above: the time to wake a thread whose core is virtual and idle.
SPIN_NANOS = 50_000
THREAD_NAME = "loopwright"

# By architecture, a declaration and an instruction that waits for a moment. RISC-V's instruction is
# an extension that not every CPU has.
_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)"),
    "armv7l": ("declare void @llvm.arm.hint(i32)", "call void @llvm.arm.hint(i32 1)"),
    "riscv64": ("", 'fence syncscope("singlethread") seq_cst'),
}
# The numbers of the system call `futex` in asm/unistd.h.
_FUTEX = {"x86_64": 202, "aarch64": 98, "armv7l": 240, "riscv64": 98}

_IR = """
; state, function, context, begin, end, number; alone on its cache lines
%task = type { i32, ptr, ptr, i64, i64, i64 }

@slots = internal global [<WORKERS> x [128 x i8]] zeroinitializer, align 128
@claims = internal global [<WORKERS> x i32] zeroinitializer, align 128
@started = internal global [<WORKERS> x i8] zeroinitializer, align 128
@busy = internal global i64 0, align 128
; The limit on busy threads, which a loader may change before the first launch.
@lw_cores = hidden global i64 <CORES>, align 8
@name = internal constant [11 x i8] c"<NAME>\\00"

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(<LONG>)
declare i32 @pthread_setname_np(<LONG>, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @clock_gettime(i32, ptr)
declare <LONG> @syscall(<LONG>, ...)
<PAUSE_TYPE>
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)

define internal i64 @nanos() nounwind {
  %time = alloca [2 x <LONG>], align 8
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %secs.long = load <LONG>, ptr %time
  %rest.at = getelementptr <LONG>, ptr %time, i64 1
  %rest.long = load <LONG>, ptr %rest.at
  %secs = <WIDEN> %secs.long to i64
  %rest = <WIDEN> %rest.long to i64
  %whole = mul i64 %secs, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}

; Wait while the state is `now`: look for a while, then sleep under the name of `asleep`.
define internal void @await(ptr %state, i32 %now, i32 %asleep) nounwind {
entry:
  %first = load atomic i32, ptr %state acquire, align 4
  %waits = icmp eq i32 %first, %now
  br i1 %waits, label %begin, label %done
begin:
  %start = call i64 @nanos()
  %deadline = add i64 %start, <SPIN>
  br label %spin
spin:
  %looks = phi i32 [ 0, %begin ], [ %looks.next, %same ], [ 0, %clock ]
  <PAUSE>
  %seen = load atomic i32, ptr %state acquire, align 4
  %still = icmp eq i32 %seen, %now
  br i1 %still, label %same, label %done
same:
  %looks.next = add i32 %looks, 1
  %more = icmp ult i32 %looks.next, 16
  br i1 %more, label %spin, label %clock
clock:
  %time = call i64 @nanos()
  %early = icmp slt i64 %time, %deadline
  br i1 %early, label %spin, label %park
park:
  %pair = cmpxchg ptr %state, i32 %now, i32 %asleep acq_rel acquire, align 4
  %parked = extractvalue { i32, i1 } %pair, 1
  br i1 %parked, label %sleep, label %done
sleep:
  %woken = call <LONG> (<LONG>, ...) @syscall(
    <LONG> <FUTEX>, ptr %state, i32 128, i32 %asleep, ptr null)
  %after = load atomic i32, ptr %state acquire, align 4
  %spurious = icmp eq i32 %after, %asleep
  br i1 %spurious, label %sleep, label %done
done:
  ret void
}

define internal void @wake(ptr %state) nounwind {
  %woken = call <LONG> (<LONG>, ...) @syscall(<LONG> <FUTEX>, ptr %state, i32 129, i32 1)
  ret void
}

define internal void @run(ptr %slot) nounwind {
  %fn.at = getelementptr %task, ptr %slot, i64 0, i32 1
  %context.at = getelementptr %task, ptr %slot, i64 0, i32 2
  %begin.at = getelementptr %task, ptr %slot, i64 0, i32 3
  %end.at = getelementptr %task, ptr %slot, i64 0, i32 4
  %number.at = getelementptr %task, ptr %slot, i64 0, i32 5
  %fn = load ptr, ptr %fn.at
  %context = load ptr, ptr %context.at
  %begin = load i64, ptr %begin.at
  %end = load i64, ptr %end.at
  %number = load i64, ptr %number.at
  call void %fn(i64 %begin, i64 %end, i64 %number, ptr %context)
  ret void
}

define internal ptr @worker(ptr %slot) nounwind {
entry:
  br label %next
next:
  call void @await(ptr %slot, i32 <IDLE>, i32 <ASLEEP>)
  %pair = cmpxchg ptr %slot, i32 <POSTED>, i32 <RUNNING> acq_rel acquire, align 4
  %taken = extractvalue { i32, i1 } %pair, 1
  br i1 %taken, label %work, label %next
work:
  call void @run(ptr %slot)
  %old = atomicrmw xchg ptr %slot, i32 <IDLE> acq_rel, align 4
  %awaited = icmp eq i32 %old, <AWAITED>
  br i1 %awaited, label %tell, label %next
tell:
  call void @wake(ptr %slot)
  br label %next
}

; Start the worker of a slot with all signals blocked; tell whether there is a thread.
define internal i1 @start(ptr %slot) nounwind {
entry:
  %all = alloca [16 x i64], align 8
  %saved = alloca [16 x i64], align 8
  %thread = alloca <LONG>, align 8
  store atomic i32 <IDLE>, ptr %slot release, align 4
  %filled = call i32 @sigfillset(ptr %all)
  %blocked = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %saved)
  %status = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %slot)
  %restored = call i32 @pthread_sigmask(i32 2, ptr %saved, ptr null)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %begun, label %failed
begun:
  %id = load <LONG>, ptr %thread
  %named = call i32 @pthread_setname_np(<LONG> %id, ptr @name)
  %detached = call i32 @pthread_detach(<LONG> %id)
  ret i1 true
failed:
  ret i1 false
}

; Claim a slot with a worker at or after `first`; return its number, or the number of slots.
define internal i64 @claim(i64 %first) nounwind {
entry:
  br label %look
look:
  %n = phi i64 [ %first, %entry ], [ %n.next, %taken ]
  %none = icmp uge i64 %n, <WORKERS>
  br i1 %none, label %empty, label %try
try:
  %claim = getelementptr i32, ptr @claims, i64 %n
  %pair = cmpxchg ptr %claim, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %have, label %taken
taken:
  %n.next = add i64 %n, 1
  br label %look
have:
  %started.at = getelementptr i8, ptr @started, i64 %n
  %started = load i8, ptr %started.at
  %lives = icmp ne i8 %started, 0
  br i1 %lives, label %good, label %new
new:
  %slot = getelementptr [128 x i8], ptr @slots, i64 %n
  %begun = call i1 @start(ptr %slot)
  br i1 %begun, label %note, label %give.back
note:
  store i8 1, ptr %started.at
  br label %good
good:
  ret i64 %n
give.back:
  store atomic i32 0, ptr %claim release, align 4
  br label %empty
empty:
  ret i64 <WORKERS>
}

define internal void @post(
    ptr %slot, ptr %fn, ptr %context, i64 %begin, i64 %end, i64 %number) nounwind {
entry:
  %fn.at = getelementptr %task, ptr %slot, i64 0, i32 1
  %context.at = getelementptr %task, ptr %slot, i64 0, i32 2
  %begin.at = getelementptr %task, ptr %slot, i64 0, i32 3
  %end.at = getelementptr %task, ptr %slot, i64 0, i32 4
  %number.at = getelementptr %task, ptr %slot, i64 0, i32 5
  store ptr %fn, ptr %fn.at
  store ptr %context, ptr %context.at
  store i64 %begin, ptr %begin.at
  store i64 %end, ptr %end.at
  store i64 %number, ptr %number.at
  %old = atomicrmw xchg ptr %slot, i32 <POSTED> acq_rel, align 4
  %asleep = icmp eq i32 %old, <ASLEEP>
  br i1 %asleep, label %tell, label %done
tell:
  call void @wake(ptr %slot)
  br label %done
done:
  ret void
}

; Count threads as busy, as many as may be and one at least; return how many.
define internal i64 @reserve(i64 %wanted) nounwind {
entry:
  %cores = load i64, ptr @lw_cores, align 8
  %most = call i64 @llvm.umax.i64(i64 %wanted, i64 %cores)
  %first = load atomic i64, ptr @busy monotonic, align 8
  br label %try
try:
  %known = phi i64 [ %first, %entry ], [ %found, %try ]
  %room = sub i64 %most, %known
  %some = call i64 @llvm.smax.i64(i64 %room, i64 1)
  %granted = call i64 @llvm.umin.i64(i64 %some, i64 %wanted)
  %sum = add i64 %known, %granted
  %pair = cmpxchg ptr @busy, i64 %known, i64 %sum monotonic monotonic, align 8
  %found = extractvalue { i64, i1 } %pair, 0
  %done = extractvalue { i64, i1 } %pair, 1
  br i1 %done, label %out, label %try
out:
  ret i64 %granted
}

define void @lw_launch(ptr %fn, i64 %extent, ptr %context, i64 %threads) nounwind {
entry:
  %fewer = call i64 @llvm.umin.i64(i64 %extent, i64 %threads)
  %wanted = call i64 @llvm.umin.i64(i64 %fewer, i64 <THREADS>)
  %one = icmp ule i64 %wanted, 1
  br i1 %one, label %inline, label %several
inline:
  call void %fn(i64 0, i64 %extent, i64 0, ptr %context)
  ret void
several:
  %granted = call i64 @reserve(i64 %wanted)
  %helpers = sub i64 %granted, 1
  %mine = alloca i64, i64 %granted, align 8
  br label %claim
claim:
  %have = phi i64 [ 0, %several ], [ %have.next, %claimed ]
  %from = phi i64 [ 0, %several ], [ %from.next, %claimed ]
  %enough = icmp eq i64 %have, %helpers
  br i1 %enough, label %ready, label %another
another:
  %number = call i64 @claim(i64 %from)
  %none = icmp eq i64 %number, <WORKERS>
  br i1 %none, label %ready, label %claimed
claimed:
  %mine.at = getelementptr i64, ptr %mine, i64 %have
  store i64 %number, ptr %mine.at
  %have.next = add i64 %have, 1
  %from.next = add i64 %number, 1
  br label %claim
ready:
  %count = add i64 %have, 1
  br label %post
post:
  %p = phi i64 [ 0, %ready ], [ %p.next, %posting ]
  %all.posted = icmp eq i64 %p, %have
  br i1 %all.posted, label %own, label %posting
posting:
  %p.next = add i64 %p, 1
  %p.after = add i64 %p, 2
  %low = mul i64 %p.next, %extent
  %high = mul i64 %p.after, %extent
  %begin = udiv i64 %low, %count
  %end = udiv i64 %high, %count
  %p.at = getelementptr i64, ptr %mine, i64 %p
  %p.slot = load i64, ptr %p.at
  %free = getelementptr [128 x i8], ptr @slots, i64 %p.slot
  call void @post(ptr %free, ptr %fn, ptr %context, i64 %begin, i64 %end, i64 %p.next)
  br label %post
own:
  %own.end = udiv i64 %extent, %count
  call void %fn(i64 0, i64 %own.end, i64 0, ptr %context)
  br label %gather
gather:
  %g = phi i64 [ 0, %own ], [ %g.next, %gathered ]
  %all.begun = icmp eq i64 %g, %have
  br i1 %all.begun, label %join, label %gathering
gathering:
  %g.next = add i64 %g, 1
  %g.at = getelementptr i64, ptr %mine, i64 %g
  %g.slot = load i64, ptr %g.at
  %left = getelementptr [128 x i8], ptr @slots, i64 %g.slot
  %pair = cmpxchg ptr %left, i32 <POSTED>, i32 <IDLE> acq_rel acquire, align 4
  %back = extractvalue { i32, i1 } %pair, 1
  br i1 %back, label %instead, label %gathered
instead:
  call void @run(ptr %left)
  br label %gathered
gathered:
  br label %gather
join:
  %j = phi i64 [ 0, %gather ], [ %j.next, %joining ]
  %all.done = icmp eq i64 %j, %have
  br i1 %all.done, label %leave, label %joining
joining:
  %j.next = add i64 %j, 1
  %j.at = getelementptr i64, ptr %mine, i64 %j
  %j.slot = load i64, ptr %j.at
  %last = getelementptr [128 x i8], ptr @slots, i64 %j.slot
  call void @await(ptr %last, i32 <RUNNING>, i32 <AWAITED>)
  %claim.at = getelementptr i32, ptr @claims, i64 %j.slot
  store atomic i32 0, ptr %claim.at release, align 4
  br label %join
leave:
  %before = atomicrmw sub ptr @busy, i64 %granted monotonic, align 8
  ret void
}

define void @lw_reset() nounwind {
  call void @llvm.memset.p0.i64(ptr @claims, i8 0, i64 <CLAIM_BYTES>, i1 false)
  call void @llvm.memset.p0.i64(ptr @started, i8 0, i64 <WORKERS>, i1 false)
  store i64 0, ptr @busy
  ret void
}
"""


def thread_pool(architecture: str, cores: int) -> str:
    """Return the LLVM IR of the thread pool of a process.

    Args:
        architecture: Linux's name of it, such as `x86_64`.
        cores: The limit on busy threads: a launch beyond it gets no worker. The loader of a process
            replaces it by the number of available cores.
    """
    declaration, pause = _PAUSE[architecture]
    has_wide_long = architecture != "armv7l"
    values = {
        "PAUSE": pause,
        "PAUSE_TYPE": declaration,
        "FUTEX": _FUTEX[architecture],
        "LONG": "i64" if has_wide_long else "i32",
        "WIDEN": "bitcast i64" if has_wide_long else "sext i32",
        "SPIN": SPIN_NANOS,
        "CORES": cores,
        "WORKERS": MAX_WORKERS,
        "THREADS": MAX_WORKERS + 1,
        "CLAIM_BYTES": 4 * MAX_WORKERS,
        "NAME": THREAD_NAME,
        "IDLE": 0,
        "ASLEEP": 1,
        "POSTED": 2,
        "RUNNING": 3,
        "AWAITED": 4,
    }
    text = _IR
    for name, value in values.items():
        text = text.replace(f"<{name}>", str(value))
    return text

#!/usr/bin/env python3
"""KernelBench's own evaluator beside our scores, on the same kernels and the same GPUs.

    warpsmith export RUN --format json --output scores.json
    tests/bench/kernelbench_evaluator.py --kernelbench CHECKOUT --tasks TASKS \
        --scores scores.json --out rows.jsonl

TASKS are the tasks of the run, as `warpsmith import` made them; each kernel is the one file below
<task>/imported/. First all kernels are built. Then each is run by eval_kernel_against_ref() of CHECKOUT in a
process of its own (5 trials, 100 timings by CUDA events), with the lock of the GPU that our measuring takes
as well.

Where its speedup and ours differ by more than 5 %, and only there, the cause is looked for by changing one
thing at a time in how the evaluator times, until the two agree. The changes, in the order in which they are tried:

    alone         reference and kernel in processes of their own (what one sets, flags or the allocator, does
                  not reach the other), and the median of 100 times, not their mean
    own_answers   the same, and each answer is a plain contiguous tensor in memory of its own
    rows          both in one process on one CPU, in turns: calls in a row (4 ms) by the host's clock, on
                  other values each; not one call from an idle GPU behind a flush of its L2
    rows_own      the same, with answers as in own_answers

The first that comes within 5 % of our score is the cause. A row of the output is JSON: our score, theirs, the
ratio of each change, the cause. Rows that are there are not made again. Needs CHECKOUT's pydantic and
requests.
"""

import argparse
import concurrent.futures
import contextlib
import fcntl
import gc
import io
import json
import math
import os
import pathlib
import queue
import statistics
import subprocess
import sys
import time
import types

CHANGES = ("alone", "own_answers", "rows", "rows_own")
NEAR = math.log(1.05)
TRIALS, TIMINGS, ROWS, ROW_S, MOST_CALLS, MOST_SETS, SETS_BYTES = 5, 100, 30, 4e-3, 1024, 64, 256 << 20
SEED = 42


# ---- in a process of its own


def evaluator_of(checkout):
    """kernelbench.eval. Its package imports clients of language models, which nothing here calls."""
    sys.path.insert(0, os.path.join(checkout, "src"))
    for name, word in {
        "dotenv": "load_dotenv",
        "tqdm": "tqdm",
        "openai": "OpenAI",
        "litellm": "completion",
    }.items():
        try:
            __import__(name)
        except ImportError:
            sys.modules[name] = types.ModuleType(name)
            setattr(sys.modules[name], word, lambda *_, **__: None)
    import kernelbench.eval

    return kernelbench.eval


def program_of(theirs, order, which):
    """The model `which` as the evaluator makes it, and a function that makes inputs."""
    import torch

    context = {}
    with open(order["reference"]) as file:
        model, init_inputs, get_inputs = theirs.load_original_model_and_inputs(file.read(), context)
    if which == "kernel":
        model = load_kernel(theirs, order)
    theirs.set_seed(SEED)
    arguments = init_inputs()
    theirs.set_seed(SEED)
    with torch.no_grad():
        made = model(**arguments) if isinstance(arguments, dict) else model(*arguments)
    return made.to("cuda"), lambda: [
        one.cuda() if isinstance(one, torch.Tensor) else one for one in get_inputs()
    ]


def load_kernel(theirs, order):
    with open(order["kernel"]) as file:
        source = file.read()
    if "triton" in source:
        return theirs.load_custom_model_with_tempfile(source)[0]
    return theirs.load_custom_model(source, {}, order["build"])


class OwnAnswers:
    """Calls `model`; each answer is a plain contiguous tensor, and not in the memory of the one before, which
    is still held: what is not so is copied."""

    def __init__(self, model):
        self.model, self.last, self.copies = model, [], {}

    def __call__(self, *inputs):
        import torch

        answer = self.model(*inputs)
        parts = list(answer) if isinstance(answer, (tuple, list)) else [answer]
        for i, one in enumerate(parts):
            if type(one) is torch.Tensor and one.is_contiguous():
                if all(one.data_ptr() != other.data_ptr() for other in self.last):
                    continue
            if i not in self.copies:
                self.copies[i] = torch.empty(one.shape, dtype=one.dtype, device=one.device)
            self.copies[i].copy_(one)
        self.last = parts
        return parts


def time_alone(theirs, order):
    """Nanoseconds of a call by the evaluator's clock, of one program that is alone in its process."""
    import torch

    model, inputs = program_of(theirs, order, order["which"])
    theirs.set_seed(SEED)
    given = inputs()
    times = {}
    with torch.no_grad():
        for change, call in (("alone", model), ("own_answers", OwnAnswers(model))):
            rounds = theirs.timing.time_execution_with_cuda_event(
                call, given, num_trials=TIMINGS, verbose=False, device=0
            )
            times[change] = statistics.median(rounds) * 1e6
    return times


def time_rows(theirs, order):
    """Nanoseconds of a call of reference and kernel in rows that take turns, in one process on one CPU."""
    import torch

    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1 - order["gpu_number"]]})
    gc.disable()
    programs = [program_of(theirs, order, which) for which in ("reference", "kernel")]
    theirs.set_seed(SEED)
    inputs = programs[0][1]
    sets = [inputs()]
    size = max(1, sum(one.numel() * one.element_size() for one in sets[0] if isinstance(one, torch.Tensor)))
    while len(sets) < max(2, min(MOST_SETS, SETS_BYTES // size)):
        sets.append(inputs())

    def row(call, calls):
        theirs.timing.clear_l2_cache("cuda")
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for i in range(calls):
            call(*sets[i % len(sets)])
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / calls * 1e9

    times = {}
    with torch.no_grad():
        for change, wrap in (("rows", lambda model: model), ("rows_own", OwnAnswers)):
            calls = [wrap(model) for model, _ in programs]
            lengths = [2, 2]
            for _ in range(3):  # the first calls of all bring much with them
                each = [row(*one) for one in zip(calls, lengths)]
                lengths = [max(2, min(MOST_CALLS, round(ROW_S * 1e9 / ns))) for ns in each]
            rounds = [[row(*one) for one in zip(calls, lengths)] for _ in range(ROWS)]
            times[change] = [statistics.median(side) for side in zip(*rounds)]
    return times


def evaluate(theirs, order):
    import torch

    with open(order["reference"]) as file, open(order["kernel"]) as kernel:
        source = kernel.read()
        done = theirs.eval_kernel_against_ref(
            file.read(),
            source,
            num_correct_trials=TRIALS,
            num_perf_trials=TIMINGS,
            measure_performance=True,
            timing_method="cuda_event",
            build_dir=order["build"],
            device=torch.device("cuda:0"),
            backend="triton" if "triton" in source else "cuda",
        )
    row = {"correct": bool(done.correctness), "metadata": {k: str(v)[:300] for k, v in done.metadata.items()}}
    if done.correctness and done.runtime > 0 and done.ref_runtime > 0:
        row["theirs"] = done.ref_runtime / done.runtime
        row["theirs_us"] = [1e3 * done.ref_runtime, 1e3 * done.runtime]
    return row


def child(order):
    """Prints one line of JSON."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            theirs = evaluator_of(order["kernelbench"])
            if order["do"] == "build":
                load_kernel(theirs, order)
                answer = {}
            else:
                with open(order["lock"], "a") as lock:  # torch is loaded: what comes now needs the GPU
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    begin = time.monotonic()
                    answer = {"evaluate": evaluate, "alone": time_alone, "rows": time_rows}[order["do"]](
                        theirs, order
                    )
                    answer["held_s"] = time.monotonic() - begin
    except BaseException as error:
        answer = {"failed": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(answer), file=out, flush=True)
    os._exit(0)


# ---- the table


def ask(order, gpu, seconds):
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu["uuid"], "TORCH_CUDA_ARCH_LIST": order["arch"]}
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--child"],
            input=json.dumps(order),
            env=environment,
            timeout=seconds,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"failed": f"took over {seconds} s"}
    except (IndexError, ValueError):
        return {"failed": "its process ended without an answer"}


def gpus_here():
    """Those of CUDA_VISIBLE_DEVICES, where it is set."""
    asked = os.environ.get("CUDA_VISIBLE_DEVICES")
    lines = subprocess.run(
        ["nvidia-smi", "--query-gpu=uuid,name,compute_cap", "--format=csv,noheader"]
        + (["-i", asked] if asked else []),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.splitlines()
    words = ([word.strip() for word in line.split(",")] for line in lines)
    return [dict(zip(("uuid", "name", "arch"), each)) | {"number": i} for i, each in enumerate(words)]


def agrees(ratio, ours):
    return ratio is not None and abs(math.log(ratio / ours)) <= NEAR


def cause_of(row):
    if agrees(row.get("theirs"), row["ours"]):
        return "agrees"
    return next((change for change in CHANGES if agrees(row.get(change), row["ours"])), "no cause found")


def compare(order, gpu, scored):
    row = {"task": order["task"], **scored, "gpu": gpu["name"], **ask({**order, "do": "evaluate"}, gpu, 300)}
    if "theirs" not in row:
        return row
    if agrees(row["theirs"], row["ours"]):
        return {**row, "cause": "agrees"}
    sides = [ask({**order, "do": "alone", "which": which}, gpu, 300) for which in ("reference", "kernel")]
    rows = ask({**order, "do": "rows"}, gpu, 300)
    for change in ("alone", "own_answers"):
        if all(change in side for side in sides):
            row[change + "_ns"] = [side[change] for side in sides]
    for change in ("rows", "rows_own"):
        if change in rows:
            row[change + "_ns"] = rows[change]
    row.update(
        {
            change: row[change + "_ns"][0] / row[change + "_ns"][1]
            for change in CHANGES
            if change + "_ns" in row
        }
    )
    failed = [one["failed"] for one in (*sides, rows) if "failed" in one]
    return {**row, "cause": cause_of(row), **({"failed_changes": failed} if failed else {})}


def orders_of(options, gpus):
    with open(options.scores) as file:
        rows = json.load(file)["measurements"]
    for scored in rows:
        folder = pathlib.Path(options.tasks) / scored["task"]
        kernels = sorted((folder / "imported").glob("*.py"))
        if (
            scored["verdict"] != "ok"
            or len(kernels) != 1
            or (options.names and scored["task"] not in options.names)
        ):
            continue
        module = next(iter(sorted(folder.glob("*.py"))), None)
        if module is None:
            continue
        build = pathlib.Path(options.build).absolute() / scored["task"]
        build.mkdir(parents=True, exist_ok=True)
        yield (
            {
                "task": scored["task"],
                "reference": str(module),
                "kernel": str(kernels[0]),
                "build": str(build),
                "kernelbench": options.kernelbench,
                "arch": gpus[0]["arch"],
            },
            {
                "ours": scored["speedup"],
                "ours_us": [scored["baseline_ns"] / 1e3, scored["candidate_ns"] / 1e3],
                "ours_interval": scored.get("interval"),
                "host_bound": scored.get("host_bound"),
            },
        )


def print_table(path):
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    correct = [row for row in rows if "theirs" in row]
    print(
        f"{'task':40} {'ours':>7} {'theirs':>7} "
        + " ".join(f"{change:>11}" for change in CHANGES)
        + "  cause"
    )
    for row in sorted(correct, key=lambda one: one["task"]):
        numbers = " ".join(
            f"{row[change]:11.3f}" if row.get(change) else " " * 10 + "-" for change in CHANGES
        )
        print(f"{row['task']:40} {row['ours']:7.3f} {row['theirs']:7.3f} {numbers}  {row['cause']}")
    for row in rows:
        if "theirs" not in row:
            print(f"{row['task']:40} {row['ours']:7.3f}       - {row.get('failed') or row.get('metadata')}")
    counts = {
        cause: sum(row["cause"] == cause for row in correct)
        for cause in ("agrees", *CHANGES, "no cause found")
    }
    held = statistics.median(row["held_s"] for row in correct) if correct else float("nan")
    print(
        f"{len(rows)} kernels that are `ok` here; {len(correct)} correct there: {counts}; "
        f"it held the GPU for {held:.1f} s"
    )


def main():
    if sys.argv[1:] == ["--child"]:
        child(json.load(sys.stdin))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("--kernelbench", "--tasks", "--scores", "--out"):
        parser.add_argument(name, required=True)
    parser.add_argument("--build", default="build/kernelbench-evaluator", help="where extensions are built")
    parser.add_argument("--build-jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument(
        "--a-gpu", type=int, default=4, help="kernels at once; they take turns at the GPU's lock"
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin none later than this")
    parser.add_argument("names", nargs="*", help="tasks; all where none is named")
    options = parser.parse_args()
    begin = time.monotonic()
    gpus = gpus_here()
    done = set()
    if os.path.exists(options.out):
        with open(options.out) as file:
            done = {json.loads(line)["task"] for line in file}
    orders = [order for order in orders_of(options, gpus) if order[0]["task"] not in done]
    with concurrent.futures.ThreadPoolExecutor(options.build_jobs) as pool:  # before anything is timed
        list(pool.map(lambda order: ask({**order[0], "do": "build"}, gpus[0], 600), orders))
    print(f"{len(orders)} kernels built in {time.monotonic() - begin:.0f} s", flush=True)
    if options.build_only:
        return
    # Where our measuring has them: gpu_lock_path() in src/measure/host.cc.
    locks = pathlib.Path(os.environ.get("WARPSMITH_TIMING_LOCK") or "/tmp/warpsmith-timing.lock").parent
    free = queue.Queue()
    for gpu in gpus * options.a_gpu:
        free.put(gpu)

    def one(order):
        if time.monotonic() - begin > options.seconds:
            return None
        gpu = free.get()
        try:
            lock = str(locks / f"warpsmith-timing-{gpu['uuid']}.lock")
            return compare({**order[0], "lock": lock, "gpu_number": gpu["number"]}, gpu, order[1])
        finally:
            free.put(gpu)

    with concurrent.futures.ThreadPoolExecutor(len(gpus) * options.a_gpu) as pool, open(
        options.out, "a"
    ) as out:
        for future in concurrent.futures.as_completed([pool.submit(one, order) for order in orders]):
            row = future.result()
            if row is not None:
                print(json.dumps(row), file=out, flush=True)
    print_table(options.out)


if __name__ == "__main__":
    main()

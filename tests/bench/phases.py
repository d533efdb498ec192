#!/usr/bin/env python3
"""Time of a run by phase, and how much of its GPUs was idle in each, by the run's journal.

    phases.py RUN [GPUS [WARPSMITH]]

A phase is a job of a stage (`sft train`), over all its rounds: its seconds are those in which a shard of it
ran. GPUS: how many the run had (left out: the most that its shards had at once). GPU-seconds are a shard's
seconds times its GPUs; of those that share a GPU each counts for its part. `own idle` is what the phase left
of GPUS x seconds, `idle` what all shards that ran at that time left. WARPSMITH: the program, asked for the
seconds that measurements held a GPU.
"""
import collections
import csv
import json
import math
import pathlib
import subprocess
import sys


def events_of(run):
    files = sorted((run / "journal").glob("*.jsonl"), key=lambda path: int(path.stem))
    if not files:
        sys.exit(f"phases.py: {run} has no journal")
    for path, following in zip(files, files[1:] + [None]):
        data = path.read_bytes()
        if following:  # it says how much of this one counts
            opened = json.loads(following.read_bytes().split(b"\n", 1)[0])
            data = data[: opened.get("after", 0)]
        for line in data.split(b"\n"):
            try:
                yield json.loads(line)
            except ValueError:
                continue  # a last line that was cut off


class Shard:
    def __init__(self, phase, gpus, begin):
        self.phase, self.gpus, self.begin, self.end = phase, gpus, begin, begin


def shards_of(events):
    executions, current, jobs, asked, running, ended = [], {}, {}, {}, {}, []
    last, began = 0, None

    def end(key, ms):
        shard = running.pop(key, None)
        if shard:
            shard.end = ms
            ended.append(shard)

    for event in events:
        ms, kind = event["ms"], event["event"]
        began = ms if began is None else began
        key = (event.get("job", 0), event.get("shard", 0))
        if kind == "opened":  # what the controller before it left ended with that one, at the latest
            for open_key in list(running):
                end(open_key, last)
        elif kind == "stage_started":
            pair = (event["name"], event.get("hash", ""))
            if pair not in current:
                current[pair] = len(executions)
                executions.append(event["name"])
        elif kind == "stage_dropped":
            current = {pair: n for pair, n in current.items() if n != event.get("execution", 0)}
        elif kind == "job_added":
            name = event["name"].split("-")[0]  # of later turns of a round: generate-2
            jobs[event.get("job", 0)] = f"{executions[event.get('execution', 0)]} {name}"
        elif kind == "submitted":
            for shard in range(event.get("shard", 0), event.get("end", 0)):
                asked[(key[0], shard)] = event.get("gpus", 0) / max(1, event.get("shards_a_gpu", 1))
        elif kind == "shard_started":
            end(key, ms)
            running[key] = Shard(jobs[key[0]], asked.get(key, 0), ms)
        elif kind == "shard_ended":
            end(key, ms)
        last = ms
    for key in list(running):
        end(key, last)
    return ended, began, last


def held_seconds(run, warpsmith):
    command = [warpsmith, "export", str(run), "--table", "measurements"]
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    held = collections.Counter()
    for m in csv.DictReader(out.stdout.splitlines()):
        seconds = float(m["gpu_held_s"] or "nan")
        if not math.isnan(seconds):  # nan: not known
            held[m["stage"]] += seconds
    return held


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    run = pathlib.Path(sys.argv[1])
    shards, began, last = shards_of(events_of(run))
    if not shards:
        sys.exit(f"phases.py: nothing has run in {run}")
    times = sorted({s.begin for s in shards} | {s.end for s in shards})
    changes = collections.defaultdict(list)
    for s in shards:
        changes[s.begin].append((s, 1))
        changes[s.end].append((s, -1))
    seconds, own, all_busy, at_once = (collections.Counter() for _ in range(4))
    now, gpus_now = collections.Counter(), collections.Counter()
    total = most = 0
    for begin, end in zip(times, times[1:] + times[-1:]):
        for s, by in changes[begin]:
            if s.end > s.begin:
                now[s.phase] += by
                gpus_now[s.phase] += by * s.gpus
        span, busy = (end - begin) / 1e3, sum(gpus_now.values())
        most = max(most, busy)
        running = [phase for phase, n in now.items() if n > 0]
        if running:
            total += span
        for phase in running:
            seconds[phase] += span
            own[phase] += span * gpus_now[phase]
            all_busy[phase] += span * busy
            at_once[phase] = max(at_once[phase], now[phase])
    gpus = int(sys.argv[2]) if len(sys.argv) > 2 else round(most)
    held = held_seconds(run, sys.argv[3]) if len(sys.argv) > 3 else {}
    count = collections.Counter(s.phase for s in shards)
    print("| phase | seconds | shards | at once | GPU-seconds | own idle | idle | held by measurements, s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    percent = lambda busy, span: f"{100 * (1 - busy / (gpus * span)):.1f} %" if gpus and span else "-"
    for phase in dict.fromkeys(s.phase for s in sorted(shards, key=lambda s: s.begin)):
        stage, job = phase.rsplit(" ", 1)
        print(f"| {phase} | {seconds[phase]:.1f} | {count[phase]} | {at_once[phase]} | {own[phase]:.1f} | "
              f"{percent(own[phase], seconds[phase])} | {percent(all_busy[phase], seconds[phase])} | "
              f"{f'{held[stage]:.1f}' if job == 'measure' and stage in held else '-'} |")
    print(f"| all | {total:.1f} | {len(shards)} | | {sum(own.values()):.1f} | | "
          f"{percent(sum(own.values()), total)} | {sum(held.values()):.1f} |")
    print(f"{gpus} GPUs; {(last - began) / 1e3:.1f} s from first to last event, "
          f"in {total:.1f} s of which a shard ran")


main()

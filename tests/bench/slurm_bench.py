#!/usr/bin/env python3
"""slurm_bench.py WARPSMITH DEV_CLUSTER.SH [REPEATS]: what the Slurm executor costs, on a development cluster of its own.

Prints, for 1,000 shards of /bin/true: the wall time from `warpsmith run` to aggregated results against a bare
`sbatch --array` of the same thousand, in turn, with medians and their ratio; the controller's CPU time a shard; how many
requests it made. And how long 10,000 shards take to lie in the queue, and what they cost over their whole life (some
minutes)."""
import glob
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SHARDS = 1000


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def in_queue():
    return len(run("squeue", "-h", "-r", "-o", "%i").split())


def until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("waited too long")
        time.sleep(0.1)


def make_workflow(folder, name, stages):
    """`stages` stages of SHARDS shards each: one for every task of a dataset that is a task many times over."""
    data = os.path.join(folder, "datasets")
    if not os.path.exists(data):
        for i in range(SHARDS):
            shutil.copytree(os.path.join(ROOT, "datasets/gelu"), f"{data}/task_{i:04}", ignore=shutil.ignore_patterns("candidates"))
    path = os.path.join(folder, name + ".yaml")
    with open(path, "w") as f:
        f.write(f"""schema: warpsmith.workflow/1
name: {name}
dataset: {{folder: datasets, train: [{', '.join(f'task_{i:04}' for i in range(SHARDS))}]}}
resources: {{cpus: 1, memory: 64MiB, time: 2m}}
shard_time: 1s
stages:
  - name: work
    kind: command
    matrix: {{part: [{', '.join(str(i) for i in range(stages))}]}}
    items: tasks
    records: none
    argv: [/bin/true, "${{matrix.part}}"]
""")
    return path


def bare():
    begin = time.monotonic()
    run("sbatch", "-p", "cpu", "--mem=128", "--time=3", "-o", "/dev/null", f"--array=0-{SHARDS - 1}", "--wrap", "true")
    until(lambda: in_queue() == 0, 300)
    return time.monotonic() - begin


def ours(warpsmith, workflow, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    run(warpsmith, "--results", folder, "run", workflow, "--site", os.path.join(ROOT, "slurm/sites/dev.yaml"), "--quiet")
    wall = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    state = json.load(open(glob.glob(folder + "/*/state.json")[0]))
    return (wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, state["executor"].get("requests", 0))


def start(cluster, lab):
    run(cluster, "up", lab)
    os.environ["SLURM_CONF"] = run(cluster, "env", lab).split("SLURM_CONF=")[1].split()[0].strip("'\";")


def main():
    warpsmith, cluster = os.path.abspath(sys.argv[1]), sys.argv[2]
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    if not (shutil.which("slurmctld") or os.path.exists("/usr/sbin/slurmctld")):
        print("slurm_bench: no Slurm here (Debian: slurm-wlm munge)")
        return 0
    scratch = tempfile.mkdtemp(prefix="wsb-", dir="/tmp")
    lab = os.path.join(scratch, "lab")
    try:
        start(cluster, lab)
        thousand = make_workflow(scratch, "thousand", 1)
        bare_s, ours_s = [], []
        for i in range(repeats):
            bare_s.append(bare())
            wall, cpu, requests = ours(warpsmith, thousand, f"{scratch}/results{i}")
            ours_s.append(wall)
            print(f"{SHARDS} shards of /bin/true: bare array {bare_s[-1]:.1f} s, warpsmith {wall:.1f} s, its CPU {cpu / SHARDS * 1e3:.3f} ms a shard, "
                  f"{requests} requests", flush=True)
        print(f"medians of {repeats}: bare {statistics.median(bare_s):.1f} s, warpsmith {statistics.median(ours_s):.1f} s, "
              f"ratio {statistics.median(ours_s) / statistics.median(bare_s):.2f}", flush=True)

        # slurmctld remembers those above for MinJobAge, and they count for its MaxJobCount.
        run(cluster, "down", lab)
        start(cluster, lab)
        many = make_workflow(scratch, "many", 10)
        run("scontrol", "update", "partitionname=cpu", "state=down")
        process = subprocess.Popen([warpsmith, "--results", scratch + "/many", "run", many, "--site",
                                    os.path.join(ROOT, "slurm/sites/dev.yaml"), "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: glob.glob(scratch + "/many/*/stages/*/*/0/command/job.json"), 60)
        begin = time.monotonic()
        until(lambda: in_queue() >= 10 * SHARDS, 120)
        print(f"{10 * SHARDS} shards in arrays: in the queue {time.monotonic() - begin:.2f} s after the first job's files")
        run("scontrol", "update", "partitionname=cpu", "state=up")
        _, status, usage = os.wait4(process.pid, 0)
        requests = json.load(open(glob.glob(scratch + "/many/*/state.json")[0]))["executor"].get("requests", 0)
        print(f"{10 * SHARDS} shards from start to aggregated results (exit code {os.waitstatus_to_exitcode(status)}): "
              f"{time.monotonic() - begin:.0f} s, CPU {(usage.ru_utime + usage.ru_stime) / 10 / SHARDS * 1e3:.3f} ms a shard, "
              f"{requests} requests, {in_queue()} left in the queue")
    finally:
        subprocess.run([cluster, "down", lab], stdout=subprocess.DEVNULL)
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""drills.py WARPSMITH DEV_CLUSTER.SH DRILL: something goes wrong on a real Slurm cluster while a run is under way.

After each drill: no finished record is lost, no item with a durable record was started again, every item has one record,
nothing of the run is left in the queue, and where the run failed `why` names the cause. Exit code 77 (skipped) where
Slurm is not installed."""
import contextlib
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SITE = os.path.join(HERE, "../../slurm/sites/dev.yaml")
WORKFLOW = os.path.join(HERE, "drill.yaml")
RETRIES = ["--set", "retry.crash=50", "--set", "retry.node_failure=50"]


def log(text):
    print(f"{time.monotonic() - BEGAN:6.1f} s  {text}", flush=True)


class Cluster:
    def __init__(self, script, folder, *options):
        self.script, self.folder = script, folder
        self.call("up", *options)
        out = subprocess.run([script, "env", folder], check=True, capture_output=True, text=True).stdout
        self.conf = out.split("SLURM_CONF=")[1].split()[0].strip("'\";")
        os.environ["SLURM_CONF"] = self.conf

    def call(self, command, *arguments):
        subprocess.run([self.script, command, self.folder, *arguments], check=True, stdout=subprocess.DEVNULL)

    def slurm(self, *command):
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout

    def queue(self, *options):
        return [line.split() for line in self.slurm("squeue", "-h", "-r", "-o", "%i %j %T", *options).splitlines()]

    def drained(self):  # a node that lost its daemon or its controller comes back
        for node in ("cpu-0", "gpu-l40", "gpu-h100", "gpu-rtx3090", "gpu-h20"):
            self.slurm("scontrol", "update", f"nodename={node}", "state=resume")


class Run:
    def __init__(self, warpsmith, folder, *options):
        self.warpsmith, self.folder, self.options = warpsmith, folder, list(options)
        self.workflow = WORKFLOW
        self.results = os.path.dirname(folder)
        self.process = None
        self.err = open(os.path.join(self.results, "controller.log"), "a+")

    def start(self, umask=-1):
        self.process = subprocess.Popen(
            [self.warpsmith, "--results", self.results, "run", self.workflow, "--site", SITE, "--run-dir", self.folder,
             "--quiet", *self.options], stdout=self.err, stderr=self.err, umask=umask)
        return self

    def submit(self, sbatch_options, *options):
        """The controller as a Slurm job, whose id is returned."""
        out = subprocess.run(
            ["sbatch", "--parsable", "-p", "cpu", *sbatch_options, os.path.join(HERE, "../../slurm/warpsmith.sbatch"),
             WORKFLOW, "--site", SITE, "--run-dir", self.folder, "--quiet", *options],
            cwd=self.results, env=dict(os.environ, WARPSMITH=self.warpsmith), check=True, capture_output=True, text=True)
        return out.stdout.strip()

    def job_logs(self):
        """What controllers that were Slurm jobs printed in the folder that they were submitted from."""
        paths = [p for kind in ("slurm-*.out", "warpsmith-*.log") for p in glob.glob(glob.escape(self.results) + "/" + kind)]
        return "".join(open(path).read() for path in sorted(paths))

    def wait(self, seconds=200, mending=None):
        """`mending`: a cluster whose nodes are resumed again and again, as slurmctld drains one that it finds jobs on which
        it has lost."""
        end = time.monotonic() + seconds
        while mending and self.process.poll() is None and time.monotonic() < end:
            mending.drained()
            time.sleep(1)
        code = self.process.wait(timeout=max(1, end - time.monotonic()))
        log(f"controller ended with {code}")
        return code

    def files(self, pattern):
        """Of the stages; the folder's own name is no pattern."""
        return glob.glob(os.path.join(glob.escape(self.folder), "stages", pattern))

    def records(self):
        out = {}  # (job folder, item) -> number of records
        for path in self.files("*/*/*/*/*/*/records.jsonl"):
            job = path.rsplit("/", 3)[0]
            with open(path) as f:
                for line in f:
                    if line.endswith("\n") and "item" in (record := json.loads(line)):
                        out[job, record["item"]] = out.get((job, record["item"]), 0) + 1
        return out

    def until_records(self, count, seconds=60):
        end = time.monotonic() + seconds
        while len(self.records()) < count:
            assert time.monotonic() < end, f"{len(self.records())} of {count} records after {seconds} s"
            assert self.process.poll() is None, "the controller has ended"
            time.sleep(0.05)

    def until_started(self, seconds=60):
        end = time.monotonic() + seconds
        while not self.files("work/*/*/*/*/*/started.txt"):
            assert time.monotonic() < end, "nothing was started"
            time.sleep(0.2)

    def json(self, *command):
        out = subprocess.run([self.warpsmith, "--results", self.results, *command, "--json"], capture_output=True,
                             text=True, timeout=60)
        return json.loads(out.stdout)

    def text(self, *command):
        return subprocess.run([self.warpsmith, "--results", self.results, *command], capture_output=True, text=True,
                              timeout=60).stdout

    def until_status(self, wanted, seconds=30):
        end = time.monotonic() + seconds
        while wanted not in (shown := self.text("status", self.folder)):
            assert time.monotonic() < end and self.process.poll() is None, shown + self.errors()
            time.sleep(0.3)
        return shown

    def why(self, stage):
        return json.dumps(self.json("why", stage, "--run", self.folder))

    def errors(self):
        self.err.flush()
        with open(self.err.name) as f:
            return f.read()

    def check_whole(self, cluster):
        items = 0
        records = self.records()
        for path in self.files("*/*/*/*/items.jsonl"):
            for line in open(path):
                items += 1
                key = os.path.dirname(path), json.loads(line)["id"]
                assert records.get(key) == 1, f"{records.get(key)} records of {key}"
        assert items == 18, f"{items} items"
        states = {s["stage"]: s["state"] for s in self.json("status", self.folder)["stages"]}
        assert set(states.values()) == {"finished"}, states
        self.check_queue(cluster)
        log(f"whole: {items} items, one record each")

    def check_queue(self, cluster):
        end = time.monotonic() + 15
        while left := [j for j in cluster.queue() if j[1].startswith("ws-") and j[2] not in ("COMPLETED", "COMPLETING")]:
            assert time.monotonic() < end, f"left in the queue: {left}"
            time.sleep(0.3)


def random_waits(count, longest):
    return [random.uniform(0.02, longest) for _ in range(count)]


def is_shard_of(path, folder):
    try:
        with open(path, "rb") as f:
            words = f.read().decode(errors="replace").split("\0")
    except OSError:
        return False  # it has ended
    return os.path.basename(words[0]) == "warpsmith-shard" and any(folder in word for word in words)


def missing_programs(*names):
    return ", ".join(p for p in names if not shutil.which(p) and not os.path.exists("/usr/sbin/" + p))


# ---- the drills ----

def plain(make_cluster, make_run):
    cluster, run = make_cluster(), make_run("--set", "params.pause=2000ms")
    run.start().until_records(1)
    for _ in range(3):  # while the queue changes
        shown = subprocess.run([run.warpsmith, "status", run.folder], capture_output=True, text=True, timeout=60)
        assert shown.returncode == 0 and "queue: " in shown.stdout, shown
        time.sleep(0.3)
    assert run.wait() == 0
    run.check_whole(cluster)


def controller_killed(make_cluster, make_run):
    cluster, run = make_cluster(), make_run(*RETRIES, "--set", "params.pause=1000ms", "--set", "params.width=1")
    kills = 0
    for wait in random_waits(20, 1.2):
        run.start()
        time.sleep(wait)
        if run.process.poll() is None:
            run.process.kill()
            kills += 1
        run.process.wait()
    log(f"{kills} kills")
    run.start()
    assert run.wait() == 0
    run.check_whole(cluster)
    assert kills >= 15, "the run ended before it could be killed"


def node_daemon_killed(make_cluster, make_run):
    cluster, run = make_cluster(), make_run(*RETRIES, "--set", "params.pause=2000ms")
    run.start().until_records(1)
    cluster.call("kill-node", "cpu-0")
    time.sleep(2)
    cluster.call("start-node", "cpu-0")
    cluster.drained()
    assert run.wait(mending=cluster) == 0
    run.check_whole(cluster)


def node_lost(make_cluster, make_run):
    cluster, run = make_cluster(), make_run(*RETRIES, "--set", "params.pause=2000ms")
    run.start().until_records(1)
    cluster.slurm("scontrol", "update", "nodename=cpu-0", "state=down", "reason=drill")
    time.sleep(3)
    cluster.drained()
    assert run.wait(mending=cluster) == 0
    run.check_whole(cluster)


def slurmctld_killed_at_submission(make_cluster, make_run):
    cluster, run = make_cluster(), make_run(*RETRIES)
    cluster.call("pause-controller")  # the submission is sent, and nobody answers
    run.start()
    time.sleep(1.5)
    cluster.call("resume-controller")
    time.sleep(0.3)
    cluster.call("kill-controller")
    time.sleep(2)
    cluster.call("start-controller")
    cluster.drained()
    code = run.wait(mending=cluster)
    if code != 0:  # it could not even read the cluster's limits
        assert code == 3, code
        assert run.start().wait(mending=cluster) == 0
    run.check_whole(cluster)


def slurmctld_killed_at_polling(make_cluster, make_run):
    cluster, run = make_cluster(), make_run(*RETRIES, "--set", "params.pause=9000ms")
    run.start()
    time.sleep(7)  # its state is on disk by then; what a loss of it does, slurmctld_killed_at_submission shows
    cluster.call("kill-controller")
    time.sleep(6)
    cluster.call("start-controller")
    cluster.drained()
    assert run.wait(mending=cluster) == 0
    run.check_whole(cluster)


def out_of_memory(make_cluster, make_run):
    cluster, run = make_cluster(), make_run("--set", "params.mode=hog", "--set", "retry.out_of_memory=0")
    assert run.start().wait() == 1
    assert "out_of_memory" in run.why("work"), run.why("work")
    again = make_run("--set", "params.mode=hog", "--set", "retry.out_of_memory=2")
    assert again.start().wait() == 0
    again.check_whole(cluster)


def over_its_time_limit(make_cluster, make_run):
    options = ["--set", "params.mode=slow", "--set", "resources.time=4s"]
    cluster, run = make_cluster(), make_run(*options, "--set", "retry.timeout=0")
    assert run.start().wait() == 1
    assert "timeout" in run.why("work"), run.why("work")
    again = make_run(*options, "--set", "retry.timeout=1")
    assert again.start().wait() == 0
    again.check_whole(cluster)


def requeued(make_cluster, make_run):
    cluster, run = make_cluster(), make_run("--set", "params.pause=2000ms")
    run.start().until_records(1)
    running = [j[0] for j in cluster.queue("-t", "RUNNING")]
    assert running
    cluster.slurm("scontrol", "requeue", ",".join(running))
    assert run.wait() == 0
    run.check_whole(cluster)


def cancelled_from_outside(make_cluster, make_run):
    cluster, run = make_cluster(), make_run("--set", "params.pause=3000ms")
    run.start().until_records(1)
    cluster.slurm("scancel", "--me")
    assert run.wait() == 1
    why = run.why("work")
    assert "stopped" in why and "CANCELLED" in why, why
    run.check_queue(cluster)
    assert run.start().wait() == 0  # a person starts it again
    run.check_whole(cluster)


def limits_reached(make_cluster, make_run):
    cluster = make_cluster("--set", "MaxArraySize=4", "--set", "MaxJobCount=8", "--set", "MinJobAge=2")
    run = make_run()
    assert run.start().wait() == 0
    run.check_whole(cluster)


def paths_that_slurm_expands(make_cluster, make_run):
    cluster = make_cluster()
    for name in ("r 100%j", "r%%b", "r%5Cx", "r\\b", "%", "\\\\%A_%a"):
        run = make_run("--set", "params.pause=10ms", name=name)
        assert run.start().wait() == 0, run.errors()
        run.check_whole(cluster)


def arrays_of_few_tasks(make_cluster, make_run):
    cluster = make_cluster("--set", "SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,max_array_tasks=3")
    run = make_run("--set", "params.pause=10ms")
    doctor = run.text("doctor", "--site", SITE, "--wait", "0")
    assert "max_array_tasks 3" in doctor, doctor
    assert run.start().wait() == 0, run.errors()
    run.check_whole(cluster)


def limits_of_a_qos(make_cluster, make_run):
    if lacks := missing_programs("slurmdbd", "mariadbd"):
        log(f"skipped: {lacks} not found (Debian: slurmdbd mariadb-server-core)")
        sys.exit(77)
    cluster = make_cluster("--accounting", "--set", "AccountingStorageEnforce=limits,qos")

    def limit(*words):
        cluster.slurm("sacctmgr", "-i", "modify", "qos", "normal", "set", *words)
        time.sleep(1)

    def check_refused(name, reason):
        run = make_run("--set", "params.pause=10ms", name=name)
        assert run.start().wait(60) == 1
        assert reason in run.why("work"), run.why("work")
        run.check_queue(cluster)

    def check_doctor(code, line):
        out = subprocess.run([run.warpsmith, "--results", run.results, "doctor", "--site", SITE, "--wait", "0"],
                             capture_output=True, text=True, timeout=60)
        assert out.returncode == code and line in out.stdout, out.stdout

    run = make_run("--set", "params.pause=10ms", name="counted")
    limit("maxtresperjob=mem=100", "flags=denyonlimit")
    check_refused("denied", "(2050)")
    check_doctor(3, "LACK cpu request")
    cluster.slurm("sbatch", "--hold", "--mem=10", "-p", "cpu", "-o", "/dev/null", "--wrap", "true")
    check_refused("denied_beside_a_job", "(2050)")
    cluster.slurm("scancel", "--me")
    limit("flags=-1")
    check_refused("never_started", "QOSMaxMemoryPerJob")
    limit("maxtresperjob=mem=-1", "maxsubmitjobsperuser=1")
    cluster.slurm("sbatch", "--hold", "-p", "cpu", "-o", "/dev/null", "--wrap", "true")
    check_doctor(0, "Job violates accounting/QOS policy")
    run.start().until_status("(2050)")
    time.sleep(3)
    assert run.process.poll() is None, run.errors()
    cluster.slurm("scancel", "--me")
    assert run.wait() == 0, run.errors()
    run.check_whole(cluster)
    limit("maxsubmitjobsperuser=0")
    check_refused("none_allowed", "(2050)")


def partition_closed(make_cluster, make_run):
    cluster = make_cluster()
    for state in ("DRAIN", "INACTIVE", "DOWN"):
        cluster.slurm("scontrol", "update", "partitionname=cpu", "state=" + state)
        run = make_run("--set", "params.pause=10ms", name=state).start()
        shown = run.until_status("PartitionDown" if state == "DOWN" else "(2070)")
        time.sleep(2)
        assert run.process.poll() is None, shown + run.errors()
        cluster.slurm("scontrol", "update", "partitionname=cpu", "state=UP")
        assert run.wait() == 0, run.errors()
        run.check_whole(cluster)


def umask_handed_on(make_cluster, make_run):
    cluster = make_cluster()
    for umask in (0o077, 0o002):
        run = make_run("--set", "params.pause=10ms", name=f"{umask:03o}")
        assert run.start(umask).wait() == 0, run.errors()
        run.check_whole(cluster)
        for folder, _, names in os.walk(run.folder):
            for path, most in [(folder, 0o777), *((os.path.join(folder, name), 0o666) for name in names)]:
                mode = os.stat(path).st_mode & 0o777
                assert mode == most & ~umask, f"{path} is {mode:03o} under umask {umask:03o}"


def held(make_cluster, make_run):
    cluster, run = make_cluster(), make_run("--set", "params.pause=3000ms", "--set", "params.width=2")
    run.start().until_records(1)
    # One of the second two: squeue may still call one of the first RUNNING when its record is there, and a shard whose
    # records are all there is not waited for.
    end = time.monotonic() + 20
    while not (running := [job for job, *_ in cluster.queue("-t", "RUNNING") if int(job.split("_")[1]) >= 2]):
        assert time.monotonic() < end, cluster.queue()
        time.sleep(0.1)
    cluster.slurm("scontrol", "requeuehold", running[-1])
    shown = run.until_status("held: ")
    assert "next start" not in shown, shown
    why = run.text("why", "work", "--run", run.folder)
    command = why.split("scontrol release ")[1].split("`")[0]
    assert "next start" not in why, why
    subprocess.run("scontrol release " + command, shell=True, check=True)
    assert run.wait() == 0, run.errors()
    run.check_whole(cluster)


def munge_gone(make_cluster, make_run):
    cluster, run = make_cluster(), make_run(*RETRIES, "--set", "params.pause=1500ms")
    run.start().until_records(1)
    cluster.call("stop-munge")
    time.sleep(5)
    cluster.call("start-munge")
    cluster.drained()
    assert run.wait(mending=cluster) == 0
    run.check_whole(cluster)


def interrupted(make_cluster, make_run):
    cluster, run = make_cluster(), make_run("--set", "params.pause=2000ms")
    run.start().until_records(1)
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130
    run.check_queue(cluster)
    assert run.start().wait() == 0
    run.check_whole(cluster)


def detached(make_cluster, make_run):
    cluster, run = make_cluster(), make_run("--set", "params.pause=2000ms", "--detach")
    run.start().until_records(1)
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130
    assert cluster.queue(), "its jobs were to go on"
    moved = subprocess.run([run.warpsmith, "run", WORKFLOW, "--site", "local", "--run-dir", run.folder, "--quiet"],
                           capture_output=True, text=True, timeout=90)
    assert moved.returncode == 4 and "shards in the queue" in moved.stderr, moved
    assert run.start().wait() == 0
    assert "attached to" in run.errors(), run.errors()
    run.check_whole(cluster)


def run_folder_full(make_cluster, make_run):
    cluster, run = make_cluster(), make_run("--set", "params.pause=1500ms")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "drill", run.results]).returncode != 0:
        log("skipped: no file system of a size of its own can be mounted here (needs root)")
        sys.exit(77)
    try:
        os.makedirs(run.folder, exist_ok=True)
        run.err = open(os.path.join(os.path.dirname(run.results), "full.log"), "a+")
        run.start().until_records(1)
        filler = os.path.join(run.results, "filler")
        descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(descriptor, b"x" * 4096)
        except OSError:
            log("full")
        os.close(descriptor)
        code = run.wait()
        assert code in (1, 3), code
        os.remove(filler)
        assert "No space left" in run.errors() or "disk_full" in run.errors(), run.errors()
        assert run.start().wait() == 0
        run.check_whole(cluster)
    finally:
        subprocess.run(["umount", "-l", run.results])


def forgotten_by_the_queue(make_cluster, make_run):
    """A shard is killed while no controller lives, and slurmctld has forgotten it before the next one looks: only slurmdbd
    knows how it ended. Without its word the shard would be tried again, as one whose end is unknown."""
    if lacks := missing_programs("slurmdbd", "mariadbd"):
        log(f"skipped: {lacks} not found (Debian: slurmdbd mariadb-server-core)")
        sys.exit(77)
    cluster = make_cluster("--accounting", "--set", "MinJobAge=2")
    run = make_run("--set", "params.pause=8000ms", "--set", "retry.crash=0")
    run.start().until_started()
    run.process.kill()
    run.process.wait()
    shards = [int(path.split("/")[2]) for path in glob.glob("/proc/[0-9]*/cmdline") if is_shard_of(path, run.folder)]
    assert shards, "no shard runs"
    for pid in shards:  # its program ends with it, and no last word is left
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    log(f"{len(shards)} shards killed")
    end = time.monotonic() + 90
    while cluster.queue("-t", "all"):
        assert time.monotonic() < end, f"not forgotten: {cluster.queue('-t', 'all')}"
        time.sleep(0.5)
    assert run.start().wait() == 1
    why = run.why("work")
    assert "crash" in why and "FAILED" in why, why
    run.check_queue(cluster)
    assert run.start().wait() == 0  # a person starts it again
    run.check_whole(cluster)


def in_job(make_cluster, make_run, sbatch_options, then, expect, name="run"):
    """The controller as a Slurm job: after its end another job, or the same one again, carries the run to its end."""
    cluster, run = make_cluster(), make_run(name=name)
    job = run.submit(["--time=2", *sbatch_options], "--set", "params.pause=9000ms", "--set", "params.width=2")
    end = time.monotonic() + 60
    while len(run.records()) < 1:
        assert time.monotonic() < end, "no record after a minute"
        time.sleep(0.2)
    then(cluster, job)
    end = time.monotonic() + 150
    while cluster.queue():
        assert time.monotonic() < end, f"still there: {cluster.queue()}"
        time.sleep(1)
    logs = run.job_logs()
    for text in expect:
        assert text in logs, logs
    run.check_whole(cluster)
    return logs


# The server's job is cancelled from outside, and the controller is killed while it answers again.
def service_lost(make_cluster, make_run):
    cluster, run = make_cluster(), make_run()
    answers = os.path.join(run.results, "answers")
    run.workflow = os.path.join(HERE, "service.yaml")
    run.options += ["--set", f"params.answers={answers}"]

    def until_answered(count, seconds=60):
        end = time.monotonic() + seconds
        while not os.path.exists(answers) or len(open(answers).readlines()) < count:
            assert time.monotonic() < end and run.process.poll() is None, run.errors()
            time.sleep(0.1)

    run.start()
    until_answered(2)
    cluster.slurm("scancel", "-p", "h20", "-u", os.environ.get("USER", "root"))
    until_answered(4)
    run.process.kill()
    run.process.wait()
    run.start()
    assert run.wait() == 0
    run.check_queue(cluster)
    lines = open(answers).readlines()
    samples = sum(int(line.split()[1]) for line in lines)
    log(f"{samples} samples of 32, by {len(set(line.split()[0] for line in lines))} servers")
    assert len(set(line.split()[0] for line in lines)) == 2, lines  # the second outlived the controller
    assert 32 <= samples <= 32 + 8, samples  # what was in flight when the server went
    assert not run.files("server/*/*/*/service.json")


def in_job_cancelled(make_cluster, make_run):
    """`warpsmith cancel` ends the controller's job as well: it neither requeues itself nor leaves shards behind."""
    cluster, run = make_cluster(), make_run("--set", "params.pause=9000ms")
    run.submit(["--time=5"], "--set", "params.pause=9000ms")
    run.until_started()
    out = subprocess.run([run.warpsmith, "cancel", run.folder], capture_output=True, text=True, timeout=90)
    assert out.returncode == 0, out
    time.sleep(8)  # a requeued job would be pending by now
    assert not cluster.queue(), cluster.queue()
    assert run.start().wait() == 0
    run.check_whole(cluster)


def in_job_requeues_itself(make_cluster, make_run):
    in_job(make_cluster, make_run, ["--signal=B:USR1@110"], lambda *_: None, ["is requeued", "attached to"])


def in_job_has_one_successor(make_cluster, make_run):
    logs = in_job(make_cluster, make_run, ["--signal=B:USR1@110", "--no-requeue"], lambda *_: None, ["goes on with the run"])
    assert logs.count("goes on with the run") == 1, logs


def in_job_requeued_by_an_administrator(make_cluster, make_run):
    in_job(make_cluster, make_run, [], lambda cluster, job: cluster.slurm("scontrol", "requeue", job), [])


def in_job_from_folders_that_slurm_expands(make_cluster, make_run):
    cluster = make_cluster()
    for name in ("r 100%j", "r%%b", "r%5Cx", "%", "r\\b", "[a] %A_%a"):
        run = make_run(name=name + "/run")
        job = run.submit(["--time=5"], "--set", "params.pause=10ms")
        end, told = time.monotonic() + 90, ""
        while cluster.queue():
            told = cluster.slurm("scontrol", "show", "job", job) or told
            assert time.monotonic() < end, f"{name}: still there: {told}{run.job_logs()}"
            time.sleep(0.5)
        assert os.path.exists(os.path.join(run.folder, "run.json")), f"{name}: no run: {told}{run.job_logs()}"
        assert os.path.exists(os.path.join(run.results, f"slurm-{job}.out")), os.listdir(run.results)
        run.check_whole(cluster)


def in_job_successor_in_a_folder_that_slurm_expands(make_cluster, make_run):
    logs = in_job(make_cluster, make_run, ["--signal=B:USR1@110", "--no-requeue"], lambda *_: None, ["goes on with the run"],
                  name="r 100%j/run")
    assert logs.count("goes on with the run") == 1, logs


DRILLS = [plain, controller_killed, node_daemon_killed, node_lost, slurmctld_killed_at_submission,
          slurmctld_killed_at_polling, out_of_memory, over_its_time_limit, requeued, cancelled_from_outside,
          limits_reached, paths_that_slurm_expands, arrays_of_few_tasks, limits_of_a_qos, partition_closed,
          umask_handed_on, held, munge_gone, interrupted, detached, run_folder_full, forgotten_by_the_queue,
          service_lost, in_job_cancelled, in_job_requeues_itself, in_job_has_one_successor, in_job_requeued_by_an_administrator,
          in_job_from_folders_that_slurm_expands, in_job_successor_in_a_folder_that_slurm_expands]


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(d.__name__ for d in DRILLS))
        return 0
    warpsmith, script, name = sys.argv[1:4]
    drill = {d.__name__: d for d in DRILLS}[name]
    if lacks := missing_programs("slurmctld", "slurmd", "munged"):
        print(f"skipped: {lacks} not found (Debian: slurm-wlm munge)")
        return 77
    seed = int(os.environ.get("SEED", random.randrange(10**6)))
    random.seed(seed)
    log(f"{name}, SEED={seed}")
    scratch = tempfile.mkdtemp(prefix="wsd-", dir="/tmp")  # short: sockets lie in it
    clusters, failed = [], True
    try:
        def make_cluster(*options):
            clusters.append(Cluster(script, os.path.join(scratch, "lab"), *options))
            return clusters[-1]

        def make_run(*options, name="run"):
            folder = os.path.join(scratch, "results", name)
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            return Run(warpsmith, folder, *options)

        drill(make_cluster, make_run)
        failed = False
    finally:
        if failed:
            for path in glob.glob(scratch + "/**/controller.log", recursive=True) + glob.glob(scratch + "/full.log"):
                print(f"--- {path}\n" + open(path).read()[-6000:])
        for cluster in clusters:
            cluster.call("down")
        if not (failed and os.environ.get("KEEP")):
            shutil.rmtree(scratch, ignore_errors=True)
    return 0


BEGAN = time.monotonic()
if __name__ == "__main__":
    sys.exit(main())

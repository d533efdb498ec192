"""sweep_test.py WARPSMITH DEV_CLUSTER.SH: a portability sweep on a real Slurm cluster, over the programs that a small run has
collected: four types of GPU that are CPU twins there, and one that the site lacks. Exit code 77 (skipped) where Slurm is not
installed."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from drills import Cluster, HERE, SITE, log

TINY = os.path.join(HERE, "../workflows/tiny.yaml")
TYPES = ["H20", "L40", "A100", "H100", "RTX3090"]  # of H20 the cluster has two, of A100 none, of the others one


def main():
    warpsmith, script = sys.argv[1:3]
    lacks = [p for p in ("slurmctld", "slurmd", "munged") if not shutil.which(p) and not os.path.exists("/usr/sbin/" + p)]
    if lacks:
        print(f"skipped: {', '.join(lacks)} not found (Debian: slurm-wlm munge)")
        return 77
    scratch = tempfile.mkdtemp(prefix="wss-", dir="/tmp")  # short: sockets lie in it
    results = os.path.join(scratch, "results")
    folder = results + "/first-sweep"
    cluster = process = None

    def command(*words, code=0):
        out = subprocess.run([warpsmith, "--results", results, *words], cwd=scratch, capture_output=True, text=True, timeout=300)
        assert out.returncode == code, f"{words} ended with {out.returncode}, not {code}:\n{out.stdout}\n{out.stderr}"
        return out.stdout + out.stderr

    def states():
        with open(folder + "/state.json") as f:
            return {s["stage"]: s["state"] for s in json.load(f)["stages"]}

    def events():
        out = []
        for path in sorted(glob.glob(folder + "/journal/*.jsonl")):
            with open(path) as f:
                out += [json.loads(line) for line in f if line.endswith("\n")]
        return out

    try:
        # A sweep over a run that is not there starts nothing, and says what makes it.
        said = command("sweep", "first", "--gpu", "L40", code=2)
        assert "there is no run `first`" in said, said
        said = command("run", os.path.join(HERE, "../../workflows/portability.yaml"), "--set", "params.run=" + results + "/first",
                       "--site", "local", code=2)
        assert "stage sweep-L40 cannot run: there is no run" in said and not os.path.exists(results + "/portability"), said

        command("run", TINY, "--only", "collect", "--run-dir", results + "/first", "--quiet")
        log("the first run has collected")
        assert "twice" in command("sweep", "first", "--gpu", "L40,L40", code=2)

        cluster = Cluster(script, os.path.join(scratch, "lab"))
        cluster.slurm("scontrol", "update", "nodename=gpu-rtx3090", "state=drain", "reason=test")
        with open(scratch + "/controller.log", "w") as err:
            process = subprocess.Popen([warpsmith, "--results", results, "sweep", "first", "--gpu", ",".join(TYPES), "--site", SITE,
                                        "--quiet"], cwd=scratch, stdout=err, stderr=err)
        # The type whose node is away holds no other.
        others = ["sweep-" + t for t in TYPES if t != "RTX3090"]
        end = time.monotonic() + 120
        while not (os.path.exists(folder + "/state.json") and all(states().get(s) == "finished" for s in others)):
            assert time.monotonic() < end, f"after two minutes: {states()}"
            assert process.poll() is None, "the controller has ended"
            time.sleep(0.3)
        assert states()["sweep-RTX3090"] == "running", states()
        log("the others have finished")
        cluster.slurm("scontrol", "update", "nodename=gpu-rtx3090", "state=resume")
        assert process.wait(timeout=120) == 0
        log("the last has finished")

        # Each type's timings ran on its own node, everything else on the CPU node; the scarcest type began.
        nodes, jobs, stages = {}, {}, []
        for e in events():
            if e["event"] == "stage_started":
                stages.append(e["name"])
            if e["event"] == "job_added":
                jobs[e.get("job", 0)] = (stages[e.get("execution", 0)], e["name"])
            if e["event"] == "shard_ended":
                nodes.setdefault(jobs[e.get("job", 0)], set()).add(e["name"].split("@")[1])
        want = {("sweep-" + t, "measure"): {"gpu-" + t.lower()} for t in TYPES if t != "A100"}
        want |= {("sweep-" + t, "compile"): {"cpu-0"} for t in TYPES if t != "A100"}
        assert nodes == want, nodes
        of_gpus = [s for s in stages if s != "sweep-A100"]
        assert of_gpus[0] == "sweep-RTX3090" and of_gpus[-1] == "sweep-H20", stages  # none usable; two

        # No number bears the name of a GPU.
        export = json.loads(command("export", "first-sweep", "--format", "json"))
        found = {s["device"]: s["device_found"] for s in export["stages"]}
        assert found == {t: "none" if t == "A100" else "twin" for t in TYPES}, found
        rows = {}
        for m in export["measurements"]:
            rows.setdefault(m["stage"], []).append(m)
            if m["stage"] == "sweep-A100":
                assert m["verdict"] == "not_measured" and "device" not in m, m
                assert m["detail"] == "no device: site dev has no A100", m
            else:
                assert m["device"]["kind"] == "cpu", m
        counts = {stage: len(list_) for stage, list_ in rows.items()}
        assert set(counts) == {"sweep-" + t for t in TYPES} and len(set(counts.values())) == 1, counts
        (table,) = export["across_devices"]
        assert [c["device"] for c in table["columns"]] == ["H20", "L40", "H100", "RTX3090", "A100"], table["columns"]
        assert any(c["geometric_mean"] for c in table["columns"][:4]) and not table["columns"][4]["geometric_mean"]
        for row in table["tasks"]:  # on a busy machine a timing may be unstable
            assert all(c["speedup"] or c["text"] for c in row["cells"]), row
        with open(folder + "/report.html") as f:
            page = f.read()
        assert "Across devices" in page and "L40 (CPU twin)" in page and "no device" in page
        with open(folder + "/results.h5", "rb") as f:
            assert f.read(4) == b"\x89HDF"

        # Nothing is stale, with or without the option; a site with the type, or a faster program, makes it so.
        assert "nothing to do" in command("sweep", "first", "--gpu", ",".join(TYPES), "--site", SITE, "--quiet")
        plan = command("plan", folder + "/sweep.yaml", "--run-dir", folder)
        assert plan.count("  up to date") == 5 and "L40 by the CPU twin" in plan, plan
        plan = command("plan", folder + "/sweep.yaml", "--run-dir", folder, "--site", "local")
        assert plan.count("run, stale") >= 4 and "the device found: twin -> none" in " ".join(plan.split()), plan
        output = glob.glob(results + "/first/stages/collect/*/output.json")[0]
        with open(output) as f:
            collected = json.load(f)
        best = max((c for c in collected["candidates"] if c["measurement"]["verdict"] == "ok"),
                   key=lambda c: c["measurement"]["speedup"])
        best["measurement"]["verdict"] = "wrong_output"
        with open(output, "w") as f:
            json.dump(collected, f)
        plan = command("plan", folder + "/sweep.yaml", "--run-dir", folder)
        assert plan.count("run, stale") >= 5 and "candidates of the run: " in " ".join(plan.split()), plan
        assert not cluster.queue() or all(state in ("COMPLETED", "COMPLETING") for _, _, state in cluster.queue())
        log("all is as it should be")
        return 0
    finally:
        if process and process.poll() is None:
            process.kill()
        for path in glob.glob(scratch + "/controller.log"):
            print(f"--- {path}\n" + open(path).read()[-6000:])
        if cluster:
            cluster.call("down")
        if not os.environ.get("KEEP"):
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

"""The program of a drill: drill_items.py MODE PAUSE JOB.json SHARD. One record an item, after PAUSE; earlier attempts count.

In its first attempt the shard 1 does as MODE says: `hog` takes memory until it is stopped, `slow` never ends."""
import json
import os
import sys
import time


def main():
    mode, pause, job_file, shard = sys.argv[1], float(sys.argv[2].removesuffix("ms")) / 1000, sys.argv[3], int(sys.argv[4])
    folder = os.path.dirname(os.path.abspath(job_file))
    with open(job_file) as f:
        begin, end = json.load(f)["shards"][shard]
    with open(os.path.join(folder, "items.jsonl")) as f:
        items = [json.loads(line) for line in f][begin:end]
    done, attempt = set(), 1
    while True:
        mine = os.path.join(folder, str(shard), str(attempt))
        try:
            os.mkdir(mine)
            break
        except FileExistsError:
            path = os.path.join(mine, "records.jsonl")
            if os.path.exists(path):
                with open(path) as f:
                    done |= {json.loads(line).get("item") for line in f if line.endswith("\n")}
            attempt += 1
    print(f"attempt {attempt} of shard {shard} in Slurm job {os.environ.get('SLURM_JOB_ID')}", flush=True)
    with open(os.path.join(mine, "records.jsonl"), "a", buffering=1) as records:
        for index, item in enumerate(items, begin):
            if item["id"] in done:
                continue
            with open(os.path.join(mine, "started.txt"), "a") as started:
                started.write(item["id"] + "\n")
            if shard == 1 and attempt == 1 and mode == "hog":
                hoard = []
                while True:
                    hoard.append(bytearray(b"x" * (8 << 20)))
                    time.sleep(0.01)
            if shard == 1 and attempt == 1 and mode == "slow":
                time.sleep(3600)
            time.sleep(pause)
            records.write(json.dumps({"item": item["id"], "index": index}) + "\n")
            os.fsync(records.fileno())
        records.write(json.dumps({"end": len(items)}) + "\n")


main()

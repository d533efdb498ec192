"""A program of a `command` stage that takes a while for each item, as ShardSession does: first whole record counts."""
import json
import os
import sys
import time


def main():
    job_file, shard = sys.argv[-2], int(sys.argv[-1])
    folder = os.path.dirname(os.path.abspath(job_file))
    with open(job_file) as f:
        begin, end = json.load(f)["shards"][shard]
    with open(os.path.join(folder, "items.jsonl")) as f:
        items = [json.loads(line) for line in f][begin:end]
    shard_folder = os.path.join(folder, str(shard))
    done, attempt = set(), 1
    while True:
        mine = os.path.join(shard_folder, str(attempt))
        try:
            os.mkdir(mine)
            break
        except FileExistsError:
            path = os.path.join(mine, "records.jsonl")
            if os.path.exists(path):
                with open(path) as f:
                    done |= {json.loads(line).get("item") for line in f if line.endswith("\n")}
            attempt += 1
    with open(os.path.join(mine, "records.jsonl"), "a", buffering=1) as records:
        for index, item in enumerate(items, begin):
            if item["id"] in done:
                continue
            time.sleep(0.15)
            records.write(json.dumps({"item": item["id"], "index": index, "verdict": "ok"}) + "\n")
        records.write(json.dumps({"end": len(items)}) + "\n")


main()

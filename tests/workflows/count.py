"""A program of a `command` stage, as small as it can be: JOB.json SHARD in, one record an item out. See workflows/programs.md."""
import json
import os
import sys


def main():
    job_file, shard = sys.argv[-2], int(sys.argv[-1])
    folder = os.path.dirname(os.path.abspath(job_file))
    with open(job_file) as f:
        begin, end = json.load(f)["shards"][shard]
    with open(os.path.join(folder, "items.jsonl")) as f:
        items = [json.loads(line) for line in f][begin:end]

    # Records of earlier attempts count: nothing finished is done again.
    shard_folder = os.path.join(folder, str(shard))
    os.makedirs(shard_folder, exist_ok=True)
    done, attempt = set(), 1
    while os.path.isdir(os.path.join(shard_folder, str(attempt))):
        path = os.path.join(shard_folder, str(attempt), "records.jsonl")
        if os.path.exists(path):
            with open(path) as f:
                done |= {json.loads(line).get("item") for line in f if line.endswith("\n")}
        attempt += 1
    os.mkdir(os.path.join(shard_folder, str(attempt)))

    with open(os.path.join(shard_folder, str(attempt), "records.jsonl"), "w", buffering=1) as records:
        for index, item in enumerate(items, begin):
            if item["id"] in done:
                continue
            candidates = os.path.join(item["folder"], "candidates")
            files = sum(len(names) for _, _, names in os.walk(candidates))
            records.write(json.dumps({"item": item["id"], "index": index, "files": files}) + "\n")
            print(f"{item['id']}: {files} candidate files", file=sys.stderr)
        records.write(json.dumps({"end": len(items)}) + "\n")
        os.fsync(records.fileno())


main()

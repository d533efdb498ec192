"""The JSON Schema for editors: accepts the shipped workflows, rejects bad ones. Exits with 77 where a module is missing."""
import copy
import json
import pathlib
import sys

try:
    import jsonschema
    import yaml
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

root = pathlib.Path(sys.argv[1])
schema = json.loads((root / "workflows/workflow.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)

good = [root / f for f in ("workflows/quickstart.yaml", "workflows/cuda_l1.yaml", "workflows/portability.yaml", "workflows/cuda_l1_release.yaml",
                            "workflows/pretrained.yaml",
                          "tests/workflows/tiny.yaml")]
failures = 0
for path in good:
    for error in validator.iter_errors(yaml.safe_load(path.read_text())):
        failures += 1
        print(f"{path}: {list(error.absolute_path)}: {error.message[:300]}")


def stage(workflow, name):
    return next(s for s in workflow["stages"] if s["name"] == name)


bad = {
    "unknown key": lambda w: w.update(resorces={}),
    "no schema": lambda w: w.pop("schema"),
    "another version": lambda w: w.update(schema="warpsmith.workflow/2"),
    "no stages": lambda w: w.update(stages=[]),
    "unknown kind": lambda w: stage(w, "sft").update(kind="sftt"),
    "unknown key of a stage": lambda w: stage(w, "sft").update(rounds=3),
    "block that does not apply": lambda w: stage(w, "collect").update(optimizer={}),
    "wrong type": lambda w: stage(w, "sft").update(steps=1.5),
    "out of range": lambda w: stage(w, "contrastive").update(group=1),
    "unknown word": lambda w: stage(w, "contrastive").update(exemplars="buckets"),
    "bad duration": lambda w: w["measure"].update(budget="soon"),
    "bad size": lambda w: w["resources"].update(memory="4 gigs"),
    "bad share": lambda w: w.update(tolerate="some"),
    "empty axis": lambda w: stage(w, "evaluate").update(matrix={"of": []}),
    "command without argv": lambda w: stage(w, "count").pop("argv"),
}
tiny = yaml.safe_load(good[-1].read_text())
for name, spoil in bad.items():
    workflow = copy.deepcopy(tiny)
    spoil(workflow)
    if validator.is_valid(workflow):
        failures += 1
        print(f"accepted, but it should not be: {name}")
print(f"{len(good)} good and {len(bad)} bad workflows, {failures} failures")
sys.exit(1 if failures else 0)

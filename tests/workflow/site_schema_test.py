"""The JSON Schema of site files: accepts the shipped sites, rejects bad ones. Exits with 77 where a module is missing."""
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
schema = json.loads((root / "slurm/site.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)

good = sorted((root / "slurm/sites").glob("*.yaml"))
failures = 0 if len(good) >= 2 else 1
for path in good:
    for error in validator.iter_errors(yaml.safe_load(path.read_text())):
        failures += 1
        print(f"{path}: {list(error.absolute_path)}: {error.message[:300]}")

# The cases of site_test.cc without a mistake are good here as well.
cases = (root / "tests/workflow/site_cases.txt").read_text().split("=== ")[1:]
for case in cases:
    text, mistakes = case.split("\n", 1)[1].split("---\n", 1)
    if not mistakes.strip() and not validator.is_valid(yaml.safe_load(text)):
        failures += 1
        print(f"rejected, but it is good: {case}")

bad = {
    "no schema": lambda s: s.pop("schema"),
    "another version": lambda s: s.update(schema="warpsmith.site/2"),
    "bad name": lambda s: s.update(name="my lab"),
    "unknown key": lambda s: s.update(slrum={}),
    "unknown word": lambda s: s.update(executor="pbs"),
    "unknown key of a place": lambda s: s["cpu"].update(partiton="x"),
    "wrong type": lambda s: s["cpu"].update(partition=3),
    "text that breaks a script": lambda s: s["cpu"].update(account="a b"),
    "a count in gres": lambda s: s["gpus"]["L40"].update(gres="gpu:l40:2"),
    "gres of cpu": lambda s: s["cpu"].update(gres="gpu"),
    "twin of cpu": lambda s: s["cpu"].update(twin=True),
    "names in defaults": lambda s: s["defaults"].update(names=["x"]),
    "no names": lambda s: s["gpus"]["L40"].update(names=[]),
    "two lines in one": lambda s: s["defaults"].update(setup=["a\nb"]),
    "a command in a word": lambda s: s["defaults"].update(container=["$(id)"]),
    "a relative scratch folder": lambda s: s["defaults"].update(scratch="tmp"),
    "bad duration": lambda s: s["controller"].update(time="soon"),
    "bad size": lambda s: s["controller"].update(memory="4 gigs"),
    "out of range": lambda s: s["controller"].update(cpus=0),
    "memory_per_cpu of the controller": lambda s: s["controller"].update(memory_per_cpu="1GiB"),
    "a variable of Slurm": lambda s: s["defaults"].update(environment={"SLURM_CONF": "x"}),
    "a GPU type that is none": lambda s: s["gpus"].update({"3090": {}}),
    "cpu as a GPU type": lambda s: s["gpus"].update({"CPU": {}}),
    "auto as a GPU type": lambda s: s["gpus"].update({"auto": {}}),
    "a target that is none": lambda s: s["gpus"]["L40"].update(target="compute_89"),
    "target in defaults": lambda s: s["defaults"].update(target="sm_89"),
}
example = yaml.safe_load((root / "slurm/sites/example.yaml").read_text())
for name, spoil in bad.items():
    site = copy.deepcopy(example)
    spoil(site)
    if validator.is_valid(site):
        failures += 1
        print(f"accepted, but it should not be: {name}")
print(f"{len(good)} good and {len(bad)} bad sites, {failures} failures")
sys.exit(1 if failures else 0)

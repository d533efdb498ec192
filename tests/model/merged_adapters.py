"""merged_adapters.py BASE EXPORTED: adds the adapters in EXPORTED/adapter, which are in PEFT's form, to the weights in
BASE, as PEFT does, and prints how far the result lies at most from the weights in EXPORTED."""
import json
import os
import sys

import transformers
from safetensors.torch import load_file

PREFIX = "base_model.model."


def main():
    base_folder, exported = sys.argv[1:3]
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    load = transformers.AutoModelForCausalLM.from_pretrained
    weights = load(base_folder, dtype="float32").state_dict()
    wanted = load(exported, dtype="float32").state_dict()
    with open(os.path.join(exported, "adapter", "adapter_config.json")) as file:
        config = json.load(file)
    adapters = load_file(os.path.join(exported, "adapter", "adapter_model.safetensors"))
    scale = config["lora_alpha"] / config["r"]
    changed = set()
    for name, a in adapters.items():
        if not name.endswith(".lora_A.weight"):
            continue
        b = adapters[name.replace("lora_A", "lora_B")]
        target = name.removeprefix(PREFIX).replace(".lora_A", "")
        assert any(target.endswith(f".{one}.weight") for one in config["target_modules"]), target
        weights[target] = weights[target] + scale * (b @ a)
        changed.add(target)
    assert 2 * len(changed) == len(adapters)
    print(max(float((weights[name] - wanted[name]).abs().max()) for name in wanted))


main()

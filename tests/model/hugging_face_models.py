"""hugging_face_models.py OUT: tiny models with random weights, and what transformers makes of them.

OUT/<name>/ is a Hugging Face folder; OUT/<name>.expected.safetensors has `tokens` [n], the `logits` behind
them in float32 [n, vocabulary], `greedy`: 40 tokens behind the first five of them, and, of the mean
negative log-likelihood of tokens[1:], the gradient of each parameter as `gradient.<name>`. Prints `model
<name>` for each."""
import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
SIZES = {
    "vocab_size": 320, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256
}
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 64
}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 24}
LATENT = {"kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 10, "v_head_dim": 12,
          "num_key_value_heads": 4}
DEEPSEEK = {"n_routed_experts": 8, "n_shared_experts": 2, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1}
# name: family, what differs, how it is saved
MODELS = {
    "qwen2": ("qwen2", {"tie_word_embeddings": True}, {}),
    "qwen2_untied_sharded": ("qwen2", {"tie_word_embeddings": False}, {"max_shard_size": "20KB"}),
    "qwen2_yarn": ("qwen2", {"rope_parameters": YARN}, {}),
    "qwen3": ("qwen3", {"head_dim": 16, "tie_word_embeddings": True}, {}),
    "qwen3_one_key_head": ("qwen3", {"head_dim": 8, "num_key_value_heads": 1}, {}),
    "llama": ("llama", {"rms_norm_eps": 1e-5}, {}),
    "llama3": ("llama", {"rope_parameters": LLAMA3, "head_dim": 16, "tie_word_embeddings": True}, {}),
    "llama_linear": ("llama",
                     {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}}, {}),
    "mistral": ("mistral", {
        "sliding_window": None, "head_dim": 12,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}
    }, {}),
    "mistral_window": ("mistral", {"sliding_window": 128}, {}),
    "starcoder2": ("starcoder2", {"sliding_window": None}, {}),
    "qwen3_moe": ("qwen3_moe", {"head_dim": 8, **EXPERTS, "num_experts": 6, "norm_topk_prob": True}, {}),
    "deepseek_v2": ("deepseek_v2", {**LATENT, **EXPERTS, **DEEPSEEK, "q_lora_rank": None}, {}),
    "deepseek_v2_groups": ("deepseek_v2", {**LATENT, **EXPERTS, **DEEPSEEK, "q_lora_rank": 12, "n_group": 4,
                                           "topk_group": 2, "topk_method": "group_limited_greedy",
                                           "rope_parameters": {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707}}, {}),
    "deepseek_v3": ("deepseek_v3", {**LATENT, **EXPERTS, **DEEPSEEK, "q_lora_rank": 12, "n_group": 4,
                                    "topk_group": 2, "routed_scaling_factor": 2.5}, {}),
    "deepseek_v3_yarn": ("deepseek_v3", {**LATENT, **EXPERTS, **DEEPSEEK, "q_lora_rank": None, "n_group": 2,
                                         "topk_group": 1,
                                         "rope_parameters": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}}, {}),
}
# Also with the keys of older releases.
OLD_SPELLINGS = {"llama3_old": "llama3", "qwen2_yarn_old": "qwen2_yarn"}
HALVES = {"llama_bfloat16": ("llama", torch.bfloat16), "qwen2_float16": ("qwen2", torch.float16)}


def make(family, settings):
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(family, **{**SIZES, **settings}))
    with torch.no_grad():
        for parameter in model.parameters():  # norms and biases too
            parameter.add_(0.1 * torch.randn_like(parameter))
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.add_(0.1 * torch.randn_like(buffer))
    return model.float().eval()


def expect(model, path):
    torch.manual_seed(2)
    tokens = torch.randint(0, SIZES["vocab_size"], (100,))
    model.zero_grad()
    logits = model(tokens[None]).logits[0]
    loss = torch.nn.functional.cross_entropy(logits[:-1], tokens[1:])
    loss.backward()
    prompt = tokens[None, :5]
    greedy = model.generate(prompt,
                            attention_mask=torch.ones_like(prompt),
                            do_sample=False,
                            max_new_tokens=40,
                            min_new_tokens=40,
                            eos_token_id=None,
                            pad_token_id=0)[0, 5:]
    tensors = {"tokens": tokens, "logits": logits.detach().contiguous(), "greedy": greedy.contiguous()}
    for name, parameter in model.named_parameters():
        for stored, gradient in by_expert(name, parameter.grad):
            tensors["gradient." + stored] = gradient.contiguous().clone()
    save_file(tensors, path)


def by_expert(name, gradient):
    """Experts lie together in memory, and each by itself in files."""
    stem = name.rsplit(".", 1)[0]
    if name.endswith(".experts.gate_up_proj"):
        for i, both in enumerate(gradient):
            gate, up = both.chunk(2)
            yield f"{stem}.{i}.gate_proj.weight", gate
            yield f"{stem}.{i}.up_proj.weight", up
    elif name.endswith(".experts.down_proj"):
        for i, down in enumerate(gradient):
            yield f"{stem}.{i}.down_proj.weight", down
    else:
        yield name, gradient


def main():
    out = sys.argv[1]
    for name, (family, settings, saving) in MODELS.items():
        model = make(family, settings)
        model.save_pretrained(os.path.join(out, name), **saving)
        expect(model, os.path.join(out, name + ".expected.safetensors"))
        print("\nmodel", name)
    for name, of in OLD_SPELLINGS.items():
        model = make(*MODELS[of][:2])
        folder = os.path.join(out, name)
        model.save_pretrained(folder)
        path = os.path.join(folder, "config.json")
        with open(path) as file:
            config = json.load(file)
        rope = config.pop("rope_parameters")
        config["rope_theta"] = rope.pop("rope_theta")
        rope["type"] = rope.pop("rope_type")
        config["rope_scaling"] = rope
        config["torch_dtype"] = config.pop("dtype")
        with open(path, "w") as file:
            json.dump(config, file)
        expect(model, os.path.join(out, name + ".expected.safetensors"))
        print("\nmodel", name)
    for name, (of, dtype) in HALVES.items():
        folder = os.path.join(out, name)
        make(*MODELS[of][:2]).to(dtype).save_pretrained(folder)
        # Loaded anew: the rotary frequencies of that model were cut short with its weights.
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        expect(model, os.path.join(out, name + ".expected.safetensors"))
        print("\nmodel", name)


def load_back():
    """hugging_face_models.py --load FOLDER EXPECTED: the largest difference of a folder's logits from the
    expected."""
    from safetensors.torch import load_file
    folder, path = sys.argv[2:]
    expected = load_file(path)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        logits = model(expected["tokens"][None]).logits[0]
    print("\ndifference", (logits - expected["logits"]).abs().max().item())


if __name__ == "__main__":
    load_back() if sys.argv[1] == "--load" else main()

#!/usr/bin/env python3
"""Two training steps of a small decoder, written independently of ours, in float64 on stock PyTorch operations.

  reference_step.py > reference_step.json     writes the dump that decoder_reference_test.cc compares with
  reference_step.py --check FILE              exits 1 where FILE is not what this program writes (1e-9)

Nothing is packed or fused here: each sequence is run by itself, with a full mask, and the optimizer is torch.optim.AdamW.
Parameters are set by a formula that both sides evaluate.
"""
import json
import math
import sys

import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

LAYERS, WIDTH, HEADS, KV_HEADS, HIDDEN, VOCABULARY = 2, 16, 4, 2, 24, 264
HEAD = WIDTH // HEADS
BASE, EPSILON = 10000.0, 1e-6
RATE, DECAY, BETAS, CLIP = 1e-2, 0.1, (0.9, 0.95), 0.5
SEQUENCES = [  # prompt, completion, weight
    ([1, 3, 70, 71, 72, 90, 4], [100, 101, 102, 103, 2], 1.0),
    ([1, 3, 70, 71, 72, 90, 4], [110, 100, 2], 0.5),
    ([1, 3, 80, 4], [100, 120, 121, 122, 123, 124, 2], 2.0),
]


def make_parameters():
    shapes = [("embedding", (VOCABULARY, WIDTH))]
    for layer in range(LAYERS):
        p = f"layers.{layer}."
        shapes += [(p + "attention_norm", (WIDTH,)), (p + "qkv", ((HEADS + 2 * KV_HEADS) * HEAD, WIDTH)),
                   (p + "qkv_bias", ((HEADS + 2 * KV_HEADS) * HEAD,)), (p + "attention_out", (WIDTH, WIDTH)),
                   (p + "mlp_norm", (WIDTH,)), (p + "gate_up", (2 * HIDDEN, WIDTH)), (p + "down", (WIDTH, HIDDEN))]
    shapes.append(("final_norm", (WIDTH,)))
    parameters = {}
    for number, (name, shape) in enumerate(shapes):
        n = math.prod(shape)
        wave = torch.tensor([math.sin(0.37 * i * (1 + number % 3) + number) for i in range(n)]).reshape(shape)
        value = 1 + 0.2 * wave if name.endswith("norm") else 0.3 * wave
        parameters[name] = value.requires_grad_(True)
    return parameters


def norm(x, weight):
    return weight * x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON)


def rotate(x):  # [heads, tokens, HEAD]
    half = HEAD // 2
    frequencies = BASE ** (-torch.arange(half) / half)
    angles = torch.arange(x.shape[1])[:, None] * frequencies[None, :]
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cos + turned * sin


def forward(p, tokens):
    x = p["embedding"][torch.tensor(tokens)]
    n = len(tokens)
    mask = torch.full((n, n), -math.inf).triu(1)
    for layer in range(LAYERS):
        w = {k.split(".")[-1]: v for k, v in p.items() if k.startswith(f"layers.{layer}.")}
        qkv = norm(x, w["attention_norm"]) @ w["qkv"].T + w["qkv_bias"]
        q, k, v = qkv.split([HEADS * HEAD, KV_HEADS * HEAD, KV_HEADS * HEAD], -1)
        q = rotate(q.view(n, HEADS, HEAD).transpose(0, 1))
        k = rotate(k.view(n, KV_HEADS, HEAD).transpose(0, 1)).repeat_interleave(HEADS // KV_HEADS, 0)
        v = v.view(n, KV_HEADS, HEAD).transpose(0, 1).repeat_interleave(HEADS // KV_HEADS, 0)
        weights = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(HEAD) + mask, -1)
        x = x + (weights @ v).transpose(0, 1).reshape(n, WIDTH) @ w["attention_out"].T
        gate, up = (norm(x, w["mlp_norm"]) @ w["gate_up"].T).split(HIDDEN, -1)
        x = x + (torch.nn.functional.silu(gate) * up) @ w["down"].T
    return norm(x, p["final_norm"]) @ p["embedding"].T


def main():
    p = make_parameters()
    optimizer = torch.optim.AdamW(
        [{"params": [v for v in p.values() if v.dim() > 1], "weight_decay": DECAY},
         {"params": [v for v in p.values() if v.dim() == 1], "weight_decay": 0.0}], lr=RATE, betas=BETAS, eps=1e-8)
    dump = {"steps": []}
    for _ in range(2):
        loss, total, log_probabilities = 0, 0, []
        for prompt, completion, weight in SEQUENCES:
            logits = forward(p, prompt + completion[:-1])[len(prompt) - 1:]
            chosen = torch.log_softmax(logits, -1)[torch.arange(len(completion)), torch.tensor(completion)]
            log_probabilities += chosen.tolist()
            loss = loss - weight * chosen.sum()
            total += weight * len(completion)
        loss = loss / total
        optimizer.zero_grad()
        loss.backward()
        gradient_norm = torch.nn.utils.clip_grad_norm_(list(p.values()), CLIP)
        optimizer.step()
        dump["steps"].append({"loss": loss.item(), "gradient_norm": gradient_norm.item(),
                              "log_probabilities": log_probabilities})
    dump["parameters"] = {}
    for name, value in p.items():
        flat = value.detach().flatten()
        stride = max(1, len(flat) // 7)
        dump["parameters"][name] = {"sum": flat.sum().item(), "stride": stride, "values": flat[::stride].tolist()}
    return dump


def differs(a, b):
    if isinstance(a, dict):
        return a.keys() != b.keys() or any(differs(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) != len(b) or any(differs(x, y) for x, y in zip(a, b))
    return abs(a - b) > 1e-9 * max(1.0, abs(a))


if __name__ == "__main__":
    result = main()
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        with open(sys.argv[2]) as file:
            sys.exit(1 if differs(result, json.load(file)) else 0)
    json.dump(result, sys.stdout, indent=1)
    print()

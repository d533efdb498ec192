"""model_bench.py SHAPE [--device cuda] [--type bfloat16] [--sequences N ...] [--length L] [--only train|sample]
               [--prompts N ...] [--way generate|static|continuous]

The work of model_bench by transformers, for comparison on the same machine: SHAPE is smollm2-135m, qwen2-0.5b or a
Hugging Face folder, whose shape is taken. Training: packed steps without padding, fused AdamW, with and without
torch.compile, at each of the asked numbers of sequences; the best is marked. Sampling: 512 + 128 tokens of distinct
prompts, N of them at once (1, 16 and 128): `generate` as it is, with a static cache and torch.compile, and by continuous
batching, where this version has it.
"""
import argparse
import time

import torch
import transformers

LONG_S = 15
SHAPES = {
    "smollm2-135m": ("llama",
                     dict(num_hidden_layers=30, hidden_size=576, num_attention_heads=9, num_key_value_heads=3,
                          intermediate_size=1536, vocab_size=49152, rope_theta=100000.0, rms_norm_eps=1e-5)),
    "qwen2-0.5b": ("qwen2",
                   dict(num_hidden_layers=24, hidden_size=896, num_attention_heads=14, num_key_value_heads=2,
                        intermediate_size=4864, vocab_size=151936, rope_theta=1e6, rms_norm_eps=1e-6)),
}


def make_model(shape, dtype, device):
    if shape in SHAPES:
        family, sizes = SHAPES[shape]
        config = transformers.AutoConfig.for_model(family,
                                                   max_position_embeddings=2048,
                                                   tie_word_embeddings=True,
                                                   bos_token_id=None,
                                                   eos_token_id=None,
                                                   pad_token_id=None,
                                                   **sizes)
    else:
        config = transformers.AutoConfig.from_pretrained(shape)
    config._attn_implementation = "sdpa"
    torch.manual_seed(1)
    return transformers.AutoModelForCausalLM.from_config(config).to(device=device, dtype=dtype)


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def train(shape, dtype, device, sequences, length, steps, compiled):
    model = make_model(shape, dtype, device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    run = torch.compile(model) if compiled else model
    vocabulary = model.config.vocab_size
    best = float("inf")
    for _ in range(steps):
        ids = torch.randint(vocabulary, (sequences, length), device=device)
        wait(device)
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = run(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss = loss.item()
        wait(device)
        best = min(best, time.perf_counter() - begin)
    return sequences * length / best, best


def bench_training(options, dtype):
    rows = []
    for compiled in (False, True):
        for sequences in options.sequences:
            name = f"training  {sequences:3} x {options.length}  {'torch.compile' if compiled else 'eager':13}"
            try:
                rate, seconds = train(options.shape, dtype, options.device, sequences, options.length, options.steps,
                                      compiled)
                rows.append((rate, name))
                print(f"{name}  {1e3 * seconds:8.1f} ms/step  {rate:9.0f} tokens/s", flush=True)
            except torch.OutOfMemoryError:
                print(f"{name}  does not fit", flush=True)
            if options.device == "cuda":
                torch.cuda.empty_cache()
    if rows:
        print(f"best      {max(rows)[1]}: {max(rows)[0]:.0f} tokens/s")


def ways_to_sample(model):
    ids = dict(max_new_tokens=128, min_new_tokens=128, do_sample=True, top_k=0, temperature=1.0)

    def plain(prompts):
        return model.generate(prompts, attention_mask=torch.ones_like(prompts), **ids)[:, prompts.shape[1]:].numel()

    def static(prompts):
        return model.generate(prompts,
                              attention_mask=torch.ones_like(prompts),
                              cache_implementation="static",
                              **ids)[:, prompts.shape[1]:].numel()

    def continuous(prompts):
        config = transformers.GenerationConfig(max_new_tokens=128, do_sample=True, eos_token_id=-1, pad_token_id=0)
        outputs = model.generate_batch(inputs=prompts.tolist(), generation_config=config, progress_bar=False)
        return sum(len(one.generated_tokens) for one in outputs.values())

    yield "generate", plain
    yield "static cache, compiled", static
    if hasattr(model, "generate_batch"):
        yield "continuous batching", continuous


def bench_sampling(options, dtype):
    model = make_model(options.shape, dtype, options.device).eval()
    for batch in options.prompts:
        prompts = torch.randint(model.config.vocab_size, (batch, 512), device=options.device)
        for name, sample in ways_to_sample(model):
            if options.way and not name.startswith(options.way):
                continue
            try:
                best = float("inf")
                with torch.no_grad():
                    for repeat in range(3):
                        wait(options.device)
                        begin = time.perf_counter()
                        tokens = sample(prompts)
                        wait(options.device)
                        took = time.perf_counter() - begin
                        best = min(best, took)
                        if repeat > 0 and took > LONG_S:  # the first one compiles
                            break
                print(f"sampling  {batch:3} prompts of 512 + 128  {name:23}  {1e3 * best:8.1f} ms  "
                      f"{tokens / best:9.0f} tokens/s", flush=True)
            except Exception as error:  # a mode that this version cannot do is one row
                print(f"sampling  {batch:3} prompts of 512 + 128  {name:23}  {type(error).__name__}: "
                      f"{str(error).splitlines()[0][:80] if str(error) else ''}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shape")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--type", default="bfloat16")
    parser.add_argument("--sequences", type=int, nargs="+", default=[4, 8, 16, 32])
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--only", choices=["train", "sample"])
    parser.add_argument("--prompts", type=int, nargs="+", default=[1, 16, 128], help="sampling: how many at once")
    parser.add_argument("--way", help="sampling: this one alone: generate, static, continuous")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    dtype = getattr(torch, options.type)
    print(f"{options.shape}, {options.type} on {options.device}, torch {torch.__version__}, "
          f"transformers {transformers.__version__}")
    if options.only != "sample":
        bench_training(options, dtype)
    if options.only != "train":
        bench_sampling(options, dtype)


main()

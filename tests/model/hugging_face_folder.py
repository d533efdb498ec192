"""hugging_face_folder.py FOLDER [FAMILY]: a whole Hugging Face folder with a tiny model of random weights, a
byte-level BPE tokenizer that was trained on this file's neighbours, and a chat template."""
import glob
import os
import sys

import tokenizers
import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
TEMPLATE = ("{%- for message in messages %}{{- '<|im_start|>' + message['role'] + '\\n' + "
            "message['content'] + '<|im_end|>' + '\\n' }}{%- endfor %}"
            "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def main():
    out, family = sys.argv[1], (sys.argv[2:] or ["qwen2"])[0]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=1000,
                                             special_tokens=SPECIAL,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
                                             show_progress=False)
    here = os.path.dirname(os.path.abspath(__file__))
    tokenizer.train(sorted(glob.glob(os.path.join(here, "*.cc"))), trainer)
    whole = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer,
                                                 eos_token="<|im_end|>",
                                                 pad_token="<|endoftext|>",
                                                 chat_template=TEMPLATE)
    whole.save_pretrained(out)
    torch.manual_seed(1)
    config = transformers.AutoConfig.for_model(family,
                                               vocab_size=1024,
                                               hidden_size=64,
                                               intermediate_size=128,
                                               num_hidden_layers=2,
                                               num_attention_heads=2,  # of 32: vLLM has no smaller ones on the CPU
                                               num_key_value_heads=1,
                                               max_position_embeddings=2048,
                                               bos_token_id=None,
                                               eos_token_id=2,
                                               pad_token_id=0,
                                               tie_word_embeddings=True)
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.to(torch.bfloat16).save_pretrained(out)


main()

"""chat_prompts.py FOLDER: for each line of stdin, a JSON string, the ids of a prompt as transformers makes
them with the folder's chat template."""
import json
import sys

import transformers

# tokenizer.json as it is: AutoTokenizer would put the splitting of the model's family in its place.
tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(sys.argv[1])
for line in sys.stdin:
    chat = [{"role": "user", "content": json.loads(line)}]
    ids = tokenizer.apply_chat_template(chat,
                                        add_generation_prompt=True,
                                        enable_thinking=False,
                                        return_dict=False)
    print("\nids", json.dumps(ids))

# SPDX-License-Identifier: Apache-2.0
"""Writes what the story begins with: the configuration and the tokenizer of a small
model, a text, and conversations.

    make_files.py FOLDER SOURCE
"""
import json
import os
import pathlib
import random
import sys

TEMPLATE = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
            "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
WORDS = (["the", "a", "this"], ["model", "text", "token", "rank", "stage"],
         ["reads", "writes", "has", "sends"], ["the", "a", "every"],
         ["answer", "question", "layer", "step", "text"], ["now", "then", "again"])
ANSWERS = {"who are you": "a model", "what is it": "the text reads tokens"}


def write(path, value):
    with open(path, "w") as file:
        file.write(value if isinstance(value, str) else json.dumps(value))


def main():
    folder, source = map(pathlib.Path, sys.argv[1:])
    parts = folder / "parts"
    os.makedirs(parts)
    tokenizer = json.loads(
        (source / "test/runtime/tokenizer/Inputs/qwen/tokenizer.json").read_text())
    size = len(tokenizer["model"]["vocab"])
    for mark in ("<|im_start|>", "<|im_end|>"):
        tokenizer["added_tokens"].append(
            {"id": size, "content": mark, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": True})
        size += 1
    write(parts / "tokenizer.json", tokenizer)
    write(parts / "tokenizer_config.json",
          {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>",
           "chat_template": TEMPLATE})
    write(parts / "generation_config.json", {"eos_token_id": [0, size - 1]})
    write(parts / "config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "vocab_size": size, "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 4, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "hidden_act": "silu",
        "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "initializer_range": 0.05,
        "tie_word_embeddings": False, "attention_bias": False,
        "mlp_bias": False, "eos_token_id": 0, "torch_dtype": "float32"})
    draw = random.Random(1)
    write(folder / "text.txt", "".join(
        " ".join(draw.choice(words) for words in WORDS) + ".\n" for _ in range(2000)))
    chats = [[{"role": "user", "content": question},
              {"role": "assistant", "content": [{"type": "text", "text": answer}]}]
             for question, answer in ANSWERS.items()]
    write(folder / "chat.jsonl", "".join(
        json.dumps({"messages": chats[n % 7 % 2]}) + "\n" for n in range(64)))


if __name__ == "__main__":
    main()

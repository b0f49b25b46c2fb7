# SPDX-License-Identifier: Apache-2.0
"""Loads what the story made with transformers and PEFT: tokens, logits and greedy
continuations are those of `rota`.

    check_transformers.py FOLDER
"""
import json
import pathlib
import subprocess
import sys

import numpy
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

FOLDER = pathlib.Path(sys.argv[1])
TEXT = "The model reads tokens of a text"
QUESTION = "who are you"
torch.set_num_threads(1)


def load(folder, adapter=None):
    model = AutoModelForCausalLM.from_pretrained(
        FOLDER / folder, dtype=torch.float32, attn_implementation="eager")
    if adapter:
        from peft import PeftModel
        model = PeftModel.from_pretrained(model, FOLDER / adapter)
    return model.eval()


def rota(*arguments):
    return subprocess.run(["rota", *map(str, arguments)], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def largest_difference(model, folder, *options):
    """Of logits between transformers and `rota probe`, by the largest logit."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(model.config.vocab_size, (2, 33), generator=generator)
    save_file({"tokens": tokens.int()}, FOLDER / "tokens.safetensors")
    rota("probe", "--model", FOLDER / folder, "--tokens",
         FOLDER / "tokens.safetensors", "--write", "logits", "-o",
         FOLDER / "logits.safetensors", *options)
    found = load_file(FOLDER / "logits.safetensors")["logits"]
    with torch.no_grad():
        expected = model(tokens[:, :-1].long()).logits
    return ((found.view_as(expected) - expected).abs().max() /
            expected.abs().max().clamp(min=1)).item()


def generated(model, tokens, count):
    output = model.generate(torch.tensor([tokens]), max_new_tokens=count,
                            do_sample=False, pad_token_id=0)
    return output[0, len(tokens):].tolist()


def tokens_of(text):
    (FOLDER / "line.txt").write_text(text)
    rota("tokenize", FOLDER / "line.txt", "--tokenizer", FOLDER / "hub",
         "--end-token", "none", "-o", FOLDER / "line.npy")
    return numpy.load(FOLDER / "line.npy").tolist()


def sample(folder, tokens, count):
    line = rota("generate", FOLDER / folder, "--prompt-tokens",
                ",".join(map(str, tokens)), "--tokens", count, "--json")
    return json.loads(line)["tokens"]


def main():
    tokenizer = AutoTokenizer.from_pretrained(FOLDER / "hub")
    text = tokenizer(TEXT)["input_ids"]
    assert tokens_of(TEXT) == text
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": QUESTION}], add_generation_prompt=True,
        return_dict=False)
    assert tokens_of(tokenizer.decode(chat)) == chat

    hub, tuned = load("hub"), load("hub", "adapter")
    merged = load("merged")
    for model, folder, options in ((hub, "hub", ()), (merged, "merged", ()),
                                   (tuned, "hub", ("--adapter", FOLDER / "adapter"))):
        difference = largest_difference(model, folder, *options)
        assert difference <= 1e-5, (folder, options, difference)
    assert sample("hub", text, 24) == generated(hub, text, 24)
    answer = generated(merged, chat, 24)
    assert sample("merged", chat, 24) == answer == generated(tuned, chat, 24)
    print("answer:", tokenizer.decode(answer))


main()

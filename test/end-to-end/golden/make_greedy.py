#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes greedy.json of each golden model: a prompt and the 100 tokens with which
transformers continues it, the most likely one each time; fewer where the model
has positions for fewer.

    pip install torch transformers safetensors
    python make_greedy.py [CASE...]

A prompt is taken only if no two tokens are nearly as likely at any place: then
rounding has no influence. Made with torch 2.15 and transformers 5.24.
"""
import json
import os
import sys

import torch
from transformers import AutoModelForCausalLM

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS = 100
PROMPT = 7
MARGIN = 1e-3  # between the two largest logits


def greedy(model, prompt):
    """The continuation, and the smallest margin."""
    positions = model.config.get_text_config().max_position_embeddings
    count = min(TOKENS, positions + 1 - PROMPT)  # the last one is not read
    output = model.generate(
        torch.tensor([prompt]), max_new_tokens=count, do_sample=False,
        pad_token_id=0, output_logits=True,
        return_dict_in_generate=True)
    margins = [row[0].topk(2).values for row in output.logits]
    return (output.sequences[0, len(prompt):].tolist(),
            min((top[0] - top[1]).item() for top in margins))


def main():
    names = sys.argv[1:] or sorted(
        name for name in os.listdir(HERE)
        if os.path.exists(os.path.join(HERE, name, "model.safetensors")))
    for name in names:
        folder = os.path.join(HERE, name)
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager",
            experts_implementation="eager").eval()
        model.generation_config.eos_token_id = None  # all tokens are alike
        generator = torch.Generator().manual_seed(1)
        best = ([], [], 0.0)
        for _ in range(6):
            prompt = torch.randint(model.config.get_text_config().vocab_size,
                                   (PROMPT,), generator=generator).tolist()
            tokens, margin = greedy(model, prompt)
            # Of those with a margin, the continuation with most tokens.
            if margin >= MARGIN and len(set(tokens)) > len(set(best[1])):
                best = (prompt, tokens, margin)
        prompt, tokens, margin = best
        assert tokens, name
        with open(os.path.join(folder, "greedy.json"), "w") as file:
            json.dump({"prompt": prompt, "tokens": tokens}, file)
            file.write("\n")
        print(name, "margin", margin, "kinds", len(set(tokens)))


if __name__ == "__main__":
    main()

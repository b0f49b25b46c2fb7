# SPDX-License-Identifier: Apache-2.0
"""Trains a configuration with PyTorch eager on the CPU and prints tokens/s: the peer of `tools/bench/train`.

Needs torch and transformers. The best of the settings that a user would try is printed: eager, for bf16 autocast and
bf16 weights, and for a mixture of experts two of transformers' implementations. Dropout is left out."""
import argparse
import json
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--model", required=True, help="config.json")
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--sequence-length", type=int, default=512)
parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
parser.add_argument("--steps", type=int, default=3, help="timed steps, after one that is not")
parser.add_argument("--threads", type=int, default=2)
options = parser.parse_args()
torch.set_num_threads(options.threads)
keys = json.load(open(options.model))
keys.update({key: 0.0 for key in keys if key.endswith("_pdrop") or key.endswith("_dropout")})
config = AutoConfig.for_model(**keys)
IS_MIXTURE = hasattr(config, "num_local_experts")
tokens = torch.randint(0, config.vocab_size, (options.batch_size, options.sequence_length + 1))


def measure(weights, autocast, experts=None):
    """Tokens per second, the fastest of the timed steps."""
    torch.manual_seed(0)
    implementations = {"experts_implementation": experts} if experts else {}
    model = AutoModelForCausalLM.from_config(config, dtype=weights, attn_implementation="sdpa", **implementations)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    best = 0.0
    for step in range(options.steps + 1):
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            logits = model(tokens[:, :-1]).logits
            loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        if step:
            best = max(best, options.batch_size * options.sequence_length / (time.perf_counter() - start))
    return best


if options.dtype == "f32":
    settings = {"eager": (torch.float32, False)}
else:
    settings = {"autocast": (torch.float32, True), "bf16 weights": (torch.bfloat16, False)}
if IS_MIXTURE:
    settings = {f"{name}, {experts}": (*setting, experts) for name, setting in settings.items()
                for experts in ("eager", "grouped_mm")}
results = {name: measure(*setting) for name, setting in settings.items()}
print(json.dumps({"tokens_per_second": max(results.values()), "settings": results}))

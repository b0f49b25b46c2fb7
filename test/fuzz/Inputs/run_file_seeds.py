# SPDX-License-Identifier: Apache-2.0
"""Writes inputs of fuzz-run-file to a folder: the number of a command (train,
compile, plan, probe, eval) and a RUN.json."""
import json
import os
import sys


def seed(name, command, **options):
    text = options.pop("text", None)
    keys = {key.replace("_", "-"): value for key, value in options.items()}
    with open(os.path.join(sys.argv[1], name), "wb") as output:
        output.write(bytes([command]) + (text or json.dumps(keys)).encode())


model = {"model": "m", "batch_size": 16, "sequence_length": 16}
seed("train", 0, **model, data=["a.bin:0.7", "b.bin:0.3"], token_type="uint16",
     steps=10, learning_rate=1e-3, seed=3, save="x.safetensors", json=True,
     checkpoint_dir="c", checkpoint_interval=5, keep_best=True, resume="auto",
     accept_change=["seed", "data"], validation_data=["v"], target_loss=2.5)
seed("mesh", 1, **model, mesh="data=2,stage=-1,fsdp=2", devices=16,
     sharding_rules=["heads=tensor"], shard_optimizer=True, window=2, output="t",
     sharding="explicit", weight_gather="per-repeat", repeats=2)
seed("pipeline", 2, **model, mesh="stage=4", schedule="1f1b", microbatches=4,
     split_backward=True, layers_per_chunk=1, remat="full;1:none", explain=True)
seed("optimizer", 0, **model, data="synthetic", optimizer="muon", nesterov=False,
     muon_scale="original", group=["norm=decay:0", "embed=lr:0.1"], momentum=0.9,
     weight_decay=0.1, learning_rate_schedule="wsd", decay_share=0.2)
seed("probe", 3, model="m", tokens="t", write=["loss", "logits"], output="o", steps=2)
seed("eval", 4, checkpoint="c", data=["d"], eval_steps=3, model="m", weights="w")
seed("unknown", 0, **model, stepz=3)
seed("type", 0, **model, steps="3")
seed("deep", 0, text='{"data": ' + "[" * 1000)
seed("broken", 0, text='{"steps": 3,\n "seed": }')

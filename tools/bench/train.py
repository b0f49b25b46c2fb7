# SPDX-License-Identifier: Apache-2.0
"""Training throughput of one rank beside PyTorch on the same machine, in one run.

Usage: train.py [--python PYTHON-WITH-TORCH] [--dtype f32|bf16|both]; prints tokens/s and ratios."""
import argparse
import json
import os

from common import ROOT, compile_trainer, model_of, random_tokens, run, temporary, throughput, train

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--python", default="python3", help="a Python with torch and transformers")
parser.add_argument("--dtype", choices=["f32", "bf16", "both"], default="both")
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--profile", action="store_true", help="print the trainer's table of kernels")
options = parser.parse_args()

BATCH, SEQUENCE = 4, 512
with temporary() as folder:
    model = model_of("110m", folder)
    data = random_tokens(folder, 32000)
    for dtype in ["f32", "bf16"] if options.dtype == "both" else [options.dtype]:
        trainer = os.path.join(folder, "trainer")
        compile_trainer(["--model", model, "--batch-size", str(BATCH), "--sequence-length", str(SEQUENCE),
                         "--dtype", dtype], trainer)
        ours = throughput(train(trainer, data, options.steps, ["--threads", str(options.threads)]))
        peer = json.loads(run([options.python, os.path.join(ROOT, "tools", "bench", "pytorch.py"), "--model", model,
                               "--batch-size", str(BATCH), "--sequence-length", str(SEQUENCE), "--dtype", dtype,
                               "--threads", str(options.threads)]))["tokens_per_second"]
        print(f"110m {dtype}: rota {ours:.0f} tokens/s, PyTorch {peer:.0f} tokens/s, ratio {ours / peer:.2f}", flush=True)
        if options.profile:
            print(run([trainer, "--data", data, "--token-type", "uint16", "--steps", str(options.steps),
                       "--threads", str(options.threads), "--profile"]))

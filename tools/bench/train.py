# SPDX-License-Identifier: Apache-2.0
"""Training throughput of one rank beside PyTorch on the same machine, in one run.

Usage: train.py [--python PYTHON-WITH-TORCH] [--models 110m,gpt2,mixture] [--dtype f32|bf16|both]; prints tokens/s and
ratios. The mixture is 110m with eight experts of half the size, two of which take each token."""
import argparse
import json
import os

from common import ROOT, compile_trainer, model_of, random_tokens, run, temporary, throughput, train

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--python", default="python3", help="a Python with torch and transformers")
parser.add_argument("--models", default="110m", help="of 110m, gpt2 and mixture, separated by commas")
parser.add_argument("--dtype", choices=["f32", "bf16", "both"], default="both")
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--profile", action="store_true", help="print the trainer's table of kernels")
options = parser.parse_args()

BATCH, SEQUENCE = 4, 512


def print_profile(trainer, data, dtype):
    """The trainer's tables with each row's share of the machine's limit: of the multiply-adds for products (twice
    that in bf16), of the copy bandwidth for kernels."""
    limits = json.loads(run([os.path.join(ROOT, "build", "bin", "bench-limits"), str(options.threads)]))
    peak = limits["f32_gflops"] * (2 if dtype == "bf16" else 1)
    print(f"limits: {peak:.0f} GF/s, {limits['copy_gbytes']:.0f} GB/s")
    text = run([trainer, "--data", data, "--token-type", "uint16", "--steps", str(options.steps), "--threads",
                str(options.threads), "--eval-steps", "1", "--profile"])
    for line in text[text.index("     calls"):].splitlines():
        rate = line[36:56].split()
        if not rate or not line.strip()[0].isdigit():
            print(line)
        else:
            share = float(rate[0]) / (peak if " gemm " in line else limits["copy_gbytes"])
            print(f"{line}  {100 * share:.0f} %")


MODELS = {
    "110m": ("110m", {}),
    "gpt2": ("gpt2", {}),
    "mixture": ("110m", {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "intermediate_size": 1024,
                         "num_local_experts": 8, "num_experts_per_tok": 2, "attention_bias": None, "mlp_bias": None}),
}


def compare(name, dtype, folder):
    """Prints a model's line."""
    base, changes = MODELS[name]
    model = model_of(base, folder, **changes)
    data = random_tokens(folder, 32000)
    shape = ["--model", model, "--batch-size", str(BATCH), "--sequence-length", str(SEQUENCE), "--dtype", dtype]
    trainer = os.path.join(folder, "trainer")
    compile_trainer(shape, trainer)
    threads = ["--threads", str(options.threads)]
    ours = throughput(train(trainer, data, options.steps, threads))
    peer = json.loads(run([options.python, os.path.join(ROOT, "tools", "bench", "pytorch.py"), *shape, *threads]))
    theirs = peer["tokens_per_second"]
    print(f"{name} {dtype}: rota {ours:.0f} tokens/s, PyTorch {theirs:.0f} tokens/s, ratio {ours / theirs:.2f}",
          flush=True)
    if options.profile:
        print_profile(trainer, data, dtype)


with temporary() as folder:
    for name in options.models.split(","):
        for dtype in ["f32", "bf16"] if options.dtype == "both" else [options.dtype]:
            compare(name, dtype, folder)

# SPDX-License-Identifier: Apache-2.0
"""Training throughput of one rank beside PyTorch on the same machine, in one run.

Usage: train.py [--python PYTHON-WITH-TORCH] [--models 110m,gpt2,mixture] [--dtype f32|bf16|both] [--rounds 3]; prints
tokens/s, ratios and the share of the machine's limit. Both run in turn, --rounds times each; a number is the median of
the rounds. The mixture is 110m with eight experts of half the size, two of which take each token."""
import argparse
import json
import os
import statistics

from common import ROOT, compile_trainer, limits, random_tokens, run, shape_of, temporary, throughput, train

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--python", default="python3", help="a Python with torch and transformers")
parser.add_argument("--models", default="110m", help="of 110m, gpt2 and mixture, separated by commas")
parser.add_argument("--dtype", choices=["f32", "bf16", "both"], default="both")
parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turn")
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--profile", action="store_true", help="print the trainer's table of kernels")
options = parser.parse_args()
THREADS = ["--threads", str(options.threads)]


def print_profile(trainer, data, peak, copy):
    """The trainer's tables with each row's share of the machine's limit: of the multiply-adds for products, of the
    copy bandwidth for kernels."""
    text = run([trainer, "--data", data, "--token-type", "uint16", "--steps", str(options.steps), *THREADS,
                "--eval-steps", "1", "--profile"])
    for line in text[text.index("     calls"):].splitlines():
        rate = line[36:56].split()
        if not rate or " gemm " not in line and " kernel_" not in line:
            print(line)
        else:
            print(f"{line}  {100 * float(rate[0]) / (peak if ' gemm ' in line else copy):.0f} %")


def peer(shape):
    """Tokens per second of PyTorch's best setting."""
    return json.loads(run([options.python, os.path.join(ROOT, "tools", "bench", "pytorch.py"), *shape,
                           *THREADS]))["tokens_per_second"]


def spread(rates):
    """"median tokens/s (least to most)"."""
    return f"{statistics.median(rates):.0f} tokens/s ({min(rates):.0f} to {max(rates):.0f})"


def compare(name, dtype, machine, folder):
    """Prints a model's line."""
    shape = shape_of(name, dtype, folder)
    data = random_tokens(folder, 32000)
    trainer = os.path.join(folder, "trainer")
    compile_trainer(shape, trainer)
    ours, theirs = [], []
    for _ in range(options.rounds):
        events = train(trainer, data, options.steps, THREADS)
        ours.append(throughput(events))
        theirs.append(peer(shape))
    ratios = [a / b for a, b in zip(ours, theirs)]
    work = next(event for event in events if event["event"] == "begin")["flops_per_token"]
    peak = machine[f"{dtype}_gflops"]
    shares = [f"{100 * statistics.median(rates) * work * 1e-9 / peak:.0f} %" for rates in (ours, theirs)]
    print(f"{name} {dtype}: rota {spread(ours)}, PyTorch {spread(theirs)}, ratio "
          f"{statistics.median(ours) / statistics.median(theirs):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); "
          f"{shares[0]} and {shares[1]} of the limit", flush=True)
    if options.profile:
        print_profile(trainer, data, peak, machine["copy_gbytes"])


machine = limits(options.threads)
print(f"limits of {options.threads} threads: {machine['f32_gflops']:.0f} GF/s in f32, {machine['bf16_gflops']:.0f} in "
      f"bf16, {machine['copy_gbytes']:.0f} GB/s. Shares count a step's operations, forward and backward without "
      "recomputation, as flops_per_token of --json: products, attention for the pairs of its mask, experts for "
      "the tokens that they take, and row kernels (below 1 %).", flush=True)
with temporary() as folder:
    for name in options.models.split(","):
        for dtype in ["f32", "bf16"] if options.dtype == "both" else [options.dtype]:
            compare(name, dtype, machine, folder)

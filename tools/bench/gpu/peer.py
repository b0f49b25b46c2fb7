# SPDX-License-Identifier: Apache-2.0
"""Trains a model of Llama's or GPT-2's form with PyTorch on random tokens: the peer of Rota's trainers on a GPU.

    peer.py --model 124m.json --batch-size 64 --sequence-length 1024

Prints one line of JSON: tokens_per_second and seconds_of_a_step (the median), peak_bytes, loss_first, loss_last, mode
(the settings that ran) and compile_seconds. Compiled code, the faster of cuDNN's and flash attention, f32 master
weights and gradients beside a computation in --dtype, fused AdamW, a clipped gradient. What fails is said on the
standard error, and the next setting is tried: other attention, then eager; a batch too large for the memory is cut into
microbatches."""
import argparse
import gc
import itertools
import json
import resource
import statistics
import sys
import time

import torch
from safetensors.torch import load_file
from torch.nn.attention import SDPBackend, sdpa_kernel

import attention
import decoders

DTYPES = {"bf16": torch.bfloat16, "f32": torch.float32}
WHOLE_LAYERS = 16  # Of more layers, one is compiled on its own: compile time grows with the layers.
BACKENDS = {**attention.BACKENDS, "memory-efficient": SDPBackend.EFFICIENT_ATTENTION, "plain": SDPBackend.MATH}


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, metavar="CONFIG.json")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--sequence-length", type=int, default=1024)
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--steps", type=int, default=10, help="timed steps")
    parser.add_argument("--warm-up", type=int, default=3, help="steps before them, the first of which compiles")
    parser.add_argument("--compile", choices=["whole", "layers", "none"], help="the model at once, or layer and loss")
    parser.add_argument("--no-compile", dest="compile", action="store_const", const="none")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--weights", metavar="FILE.safetensors", help="initial weights, by their names in hubs")
    parser.add_argument("--tokens", metavar="FILE.safetensors", help="the one batch of all steps, as 'tokens' "
                        "[batch, sequence + 1], in place of random ones")
    return parser.parse_args()


def attention_backends(options, config):
    """The names of backends, the fastest first."""
    if options.device == "cpu" or options.dtype == "f32":
        return ["memory-efficient", "plain"] if options.device == "cuda" else ["flash"]
    shape = [min(options.batch_size, 16), options.sequence_length, config.heads, config.head_size]
    return [name for _, _, name in attention.ranked(shape)] or list(BACKENDS)


def batches(options, config):
    """[steps, batch, sequence + 1] on the device."""
    steps = options.warm_up + options.steps
    if not options.tokens:
        shape = (steps, options.batch_size, options.sequence_length + 1)
        return torch.randint(config.vocabulary, shape, device=options.device)
    tokens = load_file(options.tokens)["tokens"].long().to(options.device)
    options.batch_size, options.sequence_length = tokens.shape[0], tokens.shape[1] - 1
    return tokens.expand(steps, -1, -1)


class Clock:
    """Marks between steps, without waiting for the device."""

    def __init__(self, device):
        self.is_cuda = device == "cuda"
        self.marks = []

    def mark(self):
        if not self.is_cuda:
            self.marks.append(time.perf_counter())
            return
        self.marks.append(torch.cuda.Event(enable_timing=True))
        self.marks[-1].record()

    def seconds(self):
        if not self.is_cuda:
            return [end - begin for begin, end in itertools.pairwise(self.marks)]
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) * 1e-3 for begin, end in itertools.pairwise(self.marks)]


def optimizer_of(model):
    """Rota's defaults: decay of what has two dimensions or more."""
    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    return torch.optim.AdamW([{"params": decayed}, {"params": plain, "weight_decay": 0.0}], lr=3e-4,
                             betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, fused=True)


def measure(options, config, tokens, compiled, microbatches):
    torch.manual_seed(0)
    with torch.device(options.device):
        model = decoders.Decoder(config, options.sequence_length, DTYPES[options.dtype])
    if options.weights:
        model.load(load_file(options.weights))
    loss_of = model
    if compiled == "whole":
        loss_of = torch.compile(model, dynamic=False, fullgraph=True)
    elif compiled == "layers":
        model.compile_parts()
    else:
        model.loss_parts = min(8, options.batch_size // microbatches)
    optimizer = optimizer_of(model)
    parameters = list(model.parameters())

    def step(batch):
        total = 0.0
        for part in batch.chunk(microbatches):
            loss = loss_of(part[:, :-1], part[:, 1:]) / microbatches
            loss.backward()
            total += loss.detach()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return total

    clock, losses = Clock(options.device), []
    clock.mark()
    for batch in tokens:
        losses.append(step(batch))
        clock.mark()
    seconds = clock.seconds()
    median = statistics.median(seconds[options.warm_up:])
    peak = torch.cuda.max_memory_allocated() if options.device == "cuda" else \
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"tokens_per_second": options.batch_size * options.sequence_length / median, "seconds_of_a_step": median,
            "peak_bytes": peak, "loss_first": losses[0].item(), "loss_last": losses[-1].item(),
            "compile_seconds": max(0.0, seconds[0] - median) if compiled != "none" else 0.0}


def attempt(options, config, tokens, compiled, backend):
    """The result with as few microbatches as fit, or None."""
    microbatches = 1
    while microbatches <= options.batch_size:
        mode = f"{options.dtype} beside f32 masters, " + \
            {"whole": "compiled", "layers": "layers compiled", "none": "eager"}[compiled] + \
            f", {backend} attention, batch in {microbatches}"
        if options.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        try:
            with sdpa_kernel(BACKENDS[backend]):
                return {**measure(options, config, tokens, compiled, microbatches), "mode": mode}
        except torch.OutOfMemoryError as error:
            print(f"{mode}: error: {str(error).splitlines()[0]}", file=sys.stderr)
            microbatches *= 2
        except Exception as error:  # The compiler raises many kinds.
            print(f"{mode}: error: {(str(error).splitlines() or [repr(error)])[0]}", file=sys.stderr)
            microbatches = options.batch_size + 1
        torch._dynamo.reset()
        gc.collect()
        if options.device == "cuda":
            torch.cuda.empty_cache()
    return None


def main():
    options = parsed()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("error: PyTorch sees no CUDA device")
    torch.set_float32_matmul_precision("highest")  # no TF32
    config = decoders.read_config(options.model)
    compiled = options.compile or ("whole" if config.layers <= WHOLE_LAYERS else "layers")
    tokens = batches(options, config)
    modes = [compiled] if compiled == "none" else [compiled, "none"]
    for mode, backend in itertools.product(modes, attention_backends(options, config)):
        result = attempt(options, config, tokens, mode, backend)
        if result:
            print(json.dumps(result))
            return
    sys.exit("error: no setting ran")


main()

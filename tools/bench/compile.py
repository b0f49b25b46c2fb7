# SPDX-License-Identifier: Apache-2.0
"""Seconds and memory of `rota compile`: the 110m configuration, the same with 126 layers, 405b over 14 stages, and 110m
on 8 and on 1024 ranks."""
import os
import resource

from common import ROOT, compile_trainer, model_of, temporary

with temporary() as folder:
    output = os.path.join(folder, "trainer")
    common = ["--batch-size", "4", "--sequence-length", "512"]

    def fastest(arguments):
        return min(compile_trainer([*arguments], output) for _ in range(5))

    def on_ranks(data):
        """Seconds, and the largest child's resident memory so far in MiB (measured first, therefore)."""
        seconds = fastest(["--model", model_of("110m", folder), "--sequence-length", "512", "--batch-size",
                           str(4 * data), "--microbatches", "4", "--mesh", f"data={data},stage=2,tensor=2",
                           "--shard-optimizer"])
        return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024

    few, few_memory = on_ranks(2)
    many, many_memory = on_ranks(256)
    print(f"8 ranks: {few:.2f} s, {few_memory:.0f} MiB; 1024 ranks: {many:.2f} s, {many_memory:.0f} MiB at most, "
          f"ratio {many / few:.3f} and {many_memory / few_memory:.3f}")

    twelve = fastest(["--model", model_of("110m", folder), *common])
    deep = fastest(["--model", model_of("110m", folder, num_hidden_layers=126), *common])
    print(f"110m: {twelve:.2f} s; with 126 layers {deep:.2f} s, ratio {deep / twelve:.3f}")
    large = os.path.join(ROOT, "models", "configs", "llama-3.1-405b")
    seconds = fastest(["--model", large, "--mesh", "stage=14", "--schedule", "1f1b", "--microbatches", "28",
                       "--batch-size", "28", "--sequence-length", "8192", "--dtype", "bf16"])
    print(f"405b, 14 stages of 9 layers: {seconds:.2f} s")

# SPDX-License-Identifier: Apache-2.0
"""Seconds of `rota compile`: the 110m configuration, the same with 126 layers, and 405b over 16 stages."""
import os

from common import ROOT, compile_trainer, model_of, temporary

with temporary() as folder:
    output = os.path.join(folder, "trainer")
    common = ["--batch-size", "4", "--sequence-length", "512"]

    def fastest(arguments):
        return min(compile_trainer([*arguments], output) for _ in range(5))

    twelve = fastest(["--model", model_of("110m", folder), *common])
    deep = fastest(["--model", model_of("110m", folder, num_hidden_layers=126), *common])
    print(f"110m: {twelve:.2f} s; with 126 layers {deep:.2f} s, ratio {deep / twelve:.3f}")
    large = os.path.join(ROOT, "models", "configs", "llama-3.1-405b")
    seconds = fastest(["--model", large, "--mesh", "stage=14", "--schedule", "1f1b", "--microbatches", "28",
                       "--batch-size", "28", "--sequence-length", "8192", "--dtype", "bf16"])
    print(f"405b, 14 stages of 9 layers: {seconds:.2f} s")

# SPDX-License-Identifier: Apache-2.0
"""Compares `rota probe` of a golden model with transformers: logits, loss, every
gradient and ten steps of AdamW, on one rank, pipelined, and divided.

    probe_golden.py GOLDEN_FOLDER OUTPUT [MORE_DIVISIONS...]
"""
import os
import subprocess
import sys

DIVISIONS = [
    "",
    "--microbatches 4 --mesh stage=2 --repeats 2",
    "--microbatches 4 --mesh stage=2 --repeats 2 --schedule interleaved-1f1b "
    "--remat minimal",
    "--microbatches 8 --mesh stage=2 --schedule 1f1b --remat full "
    "--split-backward",
    "--microbatches 2 --mesh tensor=2",
    "--microbatches 2 --mesh fsdp=2,tensor=2 --remat full "
    "--tensor-exchange ring",
    "--microbatches 2 --mesh expert=2",
]


def main():
    golden, output, *more = sys.argv[1:]
    for options in DIVISIONS + more:
        print("division:", options or "one rank", flush=True)
        subprocess.run(["rota", "probe", os.path.join(golden, "run.json"),
                        "--model", golden, "--tokens",
                        os.path.join(golden, "tokens.safetensors"),
                        *options.split(), "-o", output], check=True)
        subprocess.run(["compare-safetensors", output,
                        os.path.join(golden, "golden.safetensors"), "1e-5"],
                       check=True)


main()

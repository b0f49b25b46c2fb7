# SPDX-License-Identifier: Apache-2.0
"""Seconds of `rota schedule auto` on 16 ranks with 2 chunks each and 128 microbatches, and its makespan as a ratio to the
lower bound, for bounds on the activations of a rank (0: none), with split and with whole backwards, and with split ones
with messages and with pairs."""
import os
import re
import subprocess
import sys
import time

from common import ROTA, temporary

SHAPE = ["--stages", "16", "--repeats", "2", "--microbatches", "128"]
with temporary() as folder:
    split = "--split-backward"
    for form in ([split], ["--split-backward=false", "--cost-backward", "2"],
                 [split, "--communication", "--cost-send", "0.25"],
                 [split, "--pairs", "--pair-share", "0.5"]):
        for bound in 0, 24, 16, 8, 6:
            command = [ROTA, "schedule", "auto", *SHAPE, *form, "--activations", str(bound), "--format", "csv", "-o",
                       os.path.join(folder, "auto.csv")]
            start = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True)
            seconds = time.perf_counter() - start
            found = re.search(r"makespan (\S+), (.*), lower bound (\S+),", done.stderr)
            if done.returncode or not found:
                sys.exit(f"{' '.join(command)}\n{done.stderr}")
            makespan, named, least = found.groups()
            print(f"{' '.join(form)}, {bound} activations: {seconds:.1f} s, makespan {makespan}, "
                  f"{float(makespan) / float(least):.3f} x the lower bound; {named}")

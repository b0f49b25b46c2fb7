# SPDX-License-Identifier: Apache-2.0
"""Seconds of `rota plan --search` for published models, by its parts, the best step that it finds, and how far that is from
the lower bound. Names as arguments run those searches alone. `published` and names of rows of published.json: the best
plan for the same devices and batch beside the plan of the published layout."""
import json
import os
import re
import sys
import time

from common import ROOT, ROTA, model_of_row, published, run, temporary

COMMON = ("batch-size", "sequence-length", "dtype", "gradient-dtype")
FLAGS = "--machine h100-sxm-80gb --dtype bf16 --gradient-dtype bf16"
SEARCHES = {
    "405b-1024": "--model llama-3.1-405b --devices 1024 --batch-size 512 --sequence-length 8192",
    "405b-512": "--model llama-3.1-405b --devices 512 --batch-size 256 --sequence-length 8192",
    "70b-64": "--model llama-3.1-70b --devices 64 --batch-size 128 --sequence-length 8192",
    "8b-8": "--model llama-3.1-8b --devices 8 --batch-size 128 --sequence-length 8192",
    "7b-8": "--model llama-2-7b --devices 8 --batch-size 32 --sequence-length 4096",
    "7b-8-stage2": "--model llama-2-7b --devices 8 --batch-size 32 --sequence-length 4096 --mesh stage=2",
}


def plan(arguments):
    return json.loads(run([ROTA, "plan", *arguments, "--json"]))


def describe(name, found, seconds):
    best = found["best"][0]
    parts = ", ".join(f"{work} {value:.1f}" for work, value in found["work_seconds"].items())
    cut = "; cut by its time" if found["is_cut"] else ""
    keys = ("mesh", "schedule", "repeats", "microbatches", "accumulate", "remat")
    flags = " ".join(f"{key}={best['run'][key]}" for key in keys if key in best["run"])
    print(f"{name}: {seconds:.1f} s ({parts}{cut}), {found['planned']} of {found['candidates']:,} planned whole; "
          f"step {best['step_seconds']:.3f} s, {best['step_seconds'] / found['least_step_seconds']:.3f} x the bound, "
          f"{best['bytes'] / 1e9:.1f} GB: {flags}", flush=True)


def search(name, arguments):
    start = time.perf_counter()
    found = plan(["--search", *arguments])
    describe(name, found, time.perf_counter() - start)
    return found["best"][0]["step_seconds"]


def compare(row):
    """Searches where a published layout is known."""
    with temporary() as folder:
        same = ["--model", model_of_row(row, folder), "--machine", row["machine"]]
        layout = plan([*same, *row["args"].split()])
        shared = re.findall(rf"--(?:{'|'.join(COMMON)}) \S+", row["args"])
        best = search(row["id"], [*same, "--devices", str(layout["devices"]), *" ".join(shared).split()])
    print(f"  published layout: {layout['step_seconds']:.3f} s by its plan, the search's best is "
          f"{best / layout['step_seconds'] - 1:+.1%}", flush=True)


names = sys.argv[1:]
if "published" in names:
    for row in published():
        if len(names) == 1 or any(name in row["id"] for name in names):
            compare(row)
    sys.exit()
for name, flags in SEARCHES.items():
    if not names or name in names:
        words = flags.split()
        words[1] = os.path.join(ROOT, "models", "configs", words[1])
        search(name, [*words, *FLAGS.split()])

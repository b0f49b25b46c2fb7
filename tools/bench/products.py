# SPDX-License-Identifier: Apache-2.0
"""Where the time of a training step on the CPU goes, and the rate of each of its products in the step and alone.

Usage: products.py [--models 110m,gpt2] [--dtype f32|bf16|both] [--threads 1,2]. Trains some steps with --profile, which
leaves the first one out, then runs each product alone (`bench-products`): warm, straight after itself, and cold, with
its operands flushed from the caches and their pages from the TLB. Rates are shares of the limit of multiply-adds that
`bench-limits` measures. The last columns are the share of the step's time that cold operands cost, and that the calls
in the step take beyond calls alone with cold ones."""
import argparse
import json
import os

from common import ROOT, compile_trainer, limits, random_tokens, run, shape_of, temporary, train

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--models", default="110m", help="of 110m and gpt2, separated by commas")
parser.add_argument("--dtype", choices=["f32", "bf16", "both"], default="both")
parser.add_argument("--threads", default="1,2", help="numbers of threads, separated by commas")
parser.add_argument("--steps", type=int, default=4, help="steps, of which the first is left out")
options = parser.parse_args()


def profile_of(trainer, data, threads):
    """{kind: {name: (calls, seconds)}} of one step."""
    events = train(trainer, data, options.steps, ["--threads", threads, "--profile", "--eval-fraction", "0"])
    tables = {}
    for event in events:
        if event["event"] == "profile":
            tables.setdefault(event["kind"], {})[event["name"]] = event["calls"], event["seconds"]
    steps = tables["phase"]["step"][0]
    return {kind: {name: (calls / steps, seconds / steps) for name, (calls, seconds) in table.items()}
            for kind, table in tables.items()}


def alone(names, threads):
    """{name: its numbers}, and whether misses of the TLB are counted."""
    lines = run([os.path.join(ROOT, "build", "bin", "bench-products"), threads, *names]).splitlines()
    first, *rows = map(json.loads, lines)
    return {row["name"]: row for row in rows}, first["tlb_misses"]


def print_row(name, calls, work, seconds, step, peak):
    """A row: `seconds` of all calls in the step, alone with warm and alone with cold operands."""
    inside, warm, cold = seconds
    shares = "".join(f"{100 * work * 1e-9 / peak / time:7.1f} %" for time in seconds)
    between = f"{100 * (cold - warm) / step:7.1f} %{100 * (inside - cold) / step:7.1f} %"
    print(f"{name:44} {calls:6.0f} {100 * inside / step:6.1f} %{shares}{between}")


def print_products(table, step, peak, threads):
    """The seconds of all products in the step."""
    found, misses = alone(table, threads)
    print(f"{'product':44} {'calls':>6} {'of step':>8}{'in step':>9}{'warm':>9}{'cold':>9}{'+ cold':>9}{'+ step':>9}")
    sums, all_calls, all_work = [0.0, 0.0, 0.0], 0, 0.0
    for name, (calls, seconds) in sorted(table.items(), key=lambda item: -item[1][1]):
        row = found[name]
        times = [seconds, calls * row["warm_seconds"], calls * row["cold_seconds"]]
        print_row(name, calls, calls * row["flops"], times, step, peak)
        if "cold_tlb_misses" in row:
            print(f"{'':44} misses of the TLB: {row['warm_tlb_misses']} warm, {row['cold_tlb_misses']} cold")
        sums = [a + b for a, b in zip(sums, times)]
        all_calls += calls
        all_work += calls * row["flops"]
    print_row("all products", all_calls, all_work, sums, step, peak)
    if misses != "counted":
        print(f"misses of the TLB are not counted here ({misses})")
    return sums[0]


def print_rest(profile, products, step):
    """What is no product, so that all shares add up to the step."""
    attention = sum(seconds for name, (_, seconds) in profile["kernel"].items() if "attention" in name)
    updates = sum(seconds for name, (_, seconds) in profile["task"].items() if name.startswith(("update", "squares")))
    rest = {"attention": attention,
            "row kernels": sum(seconds for _, seconds in profile["kernel"].values()) - attention - updates,
            "the end of the step": profile["phase"]["optimizer"][1]}
    rest["calls and waiting"] = step - products - sum(rest.values())
    print("no products: " + "; ".join(f"{name} {100 * seconds / step:.1f} %" for name, seconds in rest.items()),
          flush=True)


with temporary() as folder:
    data = random_tokens(folder, 32000)
    trainer = os.path.join(folder, "trainer")
    for name in options.models.split(","):
        for dtype in ["f32", "bf16"] if options.dtype == "both" else [options.dtype]:
            compile_trainer(shape_of(name, dtype, folder), trainer)
            for threads in options.threads.split(","):
                peak = limits(threads)[f"{dtype}_gflops"]
                profile = profile_of(trainer, data, threads)
                step = profile["phase"]["step"][1]
                print(f"\n{name} {dtype}, --threads {threads}: a step takes {step:.3f} s; limit {peak:.0f} GF/s")
                print_rest(profile, print_products(profile["gemm"], step, peak, threads), step)

# SPDX-License-Identifier: Apache-2.0
"""Trainers on a GPU: their speed beside the plan's and PyTorch's, and where a step's time goes."""
import array
import json
import math
import os
import random
import re

from machine import Failure, call, made, remembered

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
LLMC_TOKENS = 468_000  # llm.c, GPT-2 124M, one H100
PROFILED = ["124m", "moe", "llama-8b-slice"]
PEER_FORMS = ["llama", "gpt2"]  # those of decoders.py


class Model:
    """A configuration and the batches of its trainers, from large to small: the first that fits is measured."""

    def __init__(self, name, path, batches, sequence):
        self.name, self.path, self.batches, self.sequence = name, path, batches, sequence

    def trainer(self, batch):
        return f"trainer-{self.name}-{batch}"

    def config(self, changes):
        with open(self.path) as file:
            config = json.load(file)
        return {**config, **{key: value for key, value in changes.items() if key in config}}


def models(is_full):
    listed = [("124m", "124m.json", [64, 16], 1024),
              ("gpt2", f"{ROOT}/models/configs/gpt2/config.json", [64, 16], 1024),
              ("1.5b", "1.5b.json", [16, 4], 1024),
              ("moe", "moe.json", [16, 4], 1024),
              ("llama-8b-slice", "llama-8b-slice.json", [4, 1], 4096)]
    if not is_full:  # one model has a smaller batch, so that a test can take the larger one away
        listed = [(name, path, [2, 1] if name == "gpt2" else [2], 16) for name, path, _, _ in listed]
    return {name: Model(name, os.path.join(HERE, path), batches, sequence)
            for name, path, batches, sequence in listed}


def jobs(folder, sizes, compiler):
    """What compiles the trainers and their plans."""
    def compile_one(model, batch):
        path = os.path.join(folder, model.trainer(batch))
        os.makedirs(path + ".model", exist_ok=True)
        config = os.path.join(path + ".model", "config.json")
        with open(config, "w") as file:
            json.dump(model.config(sizes.changes), file)
        options = ["--model", config, "--dtype", "bf16", "--batch-size", str(batch), "--sequence-length",
                   str(model.sequence)]
        compiler.trainer(path, options)
        compiler.plan(path + ".plan", options)

    return [lambda model=model, batch=batch: compile_one(model, batch)
            for model in sizes.models.values() for batch in model.batches]


def profile_of(events):
    """{(kind, name): (calls, seconds)}; a kernel without the number that its trainer adds."""
    sums = {}
    for event in events:
        if event["event"] == "profile":
            name = event["name"]
            if event["kind"] == "kernel":
                name = re.fullmatch(r"(?:kernel_)?(.*?)(?:_\d+)?", name).group(1)
            calls, seconds = sums.get((event["kind"], name), (0, 0.0))
            sums[event["kind"], name] = calls + event["calls"], seconds + event["seconds"]
    return sums


class Runs:
    """Runs of the trainers in a folder; each figure is measured once."""

    def __init__(self, machine, python):
        self.machine, self.python, self.speeds, self.profiles = machine, python, {}, {}
        self.failed = {}  # {name of a model: why its larger batches did not run, until a row has said so}

    def config(self, model):
        with open(os.path.join(self.machine.folder, model.trainer(model.batches[0]) + ".model", "config.json")) as file:
            return json.load(file)

    def plan(self, model, batch):
        with open(made(os.path.join(self.machine.folder, model.trainer(batch) + ".plan"))) as file:
            return json.load(file)

    def tokens(self, vocabulary):
        path = os.path.join(self.machine.folder, f"tokens-{vocabulary}.bin")
        if not os.path.exists(path):
            with open(path, "wb") as file:
                array.array("H", random.Random(0).choices(range(vocabulary), k=1 << 21)).tofile(file)
        return path

    def events(self, model, steps, *options):
        """The batch of the first trainer that runs, and its events."""
        reasons = []
        for batch in model.batches:
            try:
                text = call([self.machine.path(model.trainer(batch)), "--data",
                             self.tokens(self.config(model)["vocab_size"]), "--token-type", "uint16", "--steps",
                             str(steps), "--log-interval", "1", "--eval-interval", "0", "--eval-steps", "1", "--json",
                             *options], self.machine.environment)
                self.failed.setdefault(model.name, []).extend(reasons)
                return batch, [json.loads(line) for line in text.splitlines()]
            except Failure as failure:
                reasons.append(f"batch {batch}: {failure}")
        raise Failure("; ".join(reasons))

    def told(self, table, model, beside):
        """What stands beside a row, with the failures of larger batches, which count as failed rows."""
        reasons = list(dict.fromkeys(self.failed.pop(model.name, [])))
        table.failures += len(reasons)
        return "; ".join([beside, *(reason[:240] for reason in reasons)])

    def speed(self, model):
        """(batch, tokens in a second, floating-point operations of a token)."""
        def measure():
            batch, events = self.events(model, self.machine.sizes.steps)
            return batch, rate_of(events, batch * model.sequence), events[0]["flops_per_token"]

        return remembered(self.speeds, model.name, measure)

    def profile(self, model):
        """(batch, {(kind, name): (calls, seconds) of a step}): the difference of N and 2 N steps has neither the first
        step nor the validation."""
        def measure():
            steps = self.machine.sizes.profiled_steps
            batch, once = self.events(model, steps, "--profile")
            _, twice = self.events(model, 2 * steps, "--profile")
            once, twice = profile_of(once), profile_of(twice)
            return batch, {key: [(value - before) / steps
                                 for value, before in zip(twice[key], once.get(key, (0, 0.0)))] for key in twice}

        return remembered(self.profiles, model.name, measure)


def rate_of(events, tokens):
    """Tokens/s between step 3 and the last but one: the first steps choose products, the last one validates."""
    steps = [event for event in events if event["event"] == "step"]
    if not all(math.isfinite(event["loss"]) for event in steps):
        raise Failure("the loss is not finite")
    first, last = steps[2], steps[-2]
    return tokens * (last["step"] - first["step"]) / (last["seconds"] - first["seconds"])


def speeds(table, runs):
    table.title("Trainers. MFU = tokens/s x the plan's operations of a token (causal attention, chosen experts) / peak")

    def speed(model):
        batch, rate, _ = runs.speed(model)
        peer = f"; llm.c on an H100: {LLMC_TOKENS:,}; {rate / LLMC_TOKENS:.3g} x" if model.name == "124m" else ""
        return f"{rate:,.0f} tokens/s", runs.told(table, model, f"{batch} x {model.sequence} tokens{peer}")

    def utilization(model):
        _, rate, operations = runs.speed(model)
        peak, name = runs.machine.peak()
        done = rate * operations * 1e-12
        return f"{100 * done / peak:.1f} %", f"{done:.4g} TFLOP/s of {peak:.4g} {name}"

    def prediction(model):
        batch, rate, _ = runs.speed(model)
        measured = 1e3 * batch * model.sequence / rate
        planned = 1e3 * runs.plan(model, batch)["step_seconds"]
        return f"{measured / planned:.3f} x", f"{measured:.4g} ms measured; {planned:.4g} ms planned for an H100"

    for model in runs.machine.sizes.models.values():
        table.row(model.name, lambda: speed(model))
        table.row(f"{model.name}, MFU", lambda: utilization(model))
        table.row(f"{model.name}, step", lambda: prediction(model))


def peers(table, runs):
    """PyTorch on the same model, batch and GPU."""
    table.title("The same models with PyTorch")

    def peer(model):
        batch, rate, _ = runs.speed(model)
        config = runs.machine.path(model.trainer(batch) + ".model", "config.json")
        found = json.loads(call([runs.python, os.path.join(HERE, "peer.py"), "--model", config, "--batch-size",
                                 str(batch), "--sequence-length", str(model.sequence)]))
        theirs = found["tokens_per_second"]
        return f"{theirs:,.0f} tokens/s", f"{found['mode']}; Rota: {rate:,.0f}; {rate / theirs:.3g} x"

    def row(model):
        try:
            value, beside = peer(model)
        except Failure as failure:
            value, beside = "no PyTorch", str(failure)[:240]
        return value, runs.told(table, model, beside)

    for model in runs.machine.sizes.models.values():
        if runs.machine.device != "cuda":
            table.row(model.name, lambda: ("no PyTorch", "on an emulated GPU"))
        elif runs.config(model)["model_type"] in PEER_FORMS:
            table.row(model.name, lambda: row(model))


def shares(table, runs):
    for model in (runs.machine.sizes.models[name] for name in PROFILED):
        table.title(f"Where a step of {model.name} goes, with --profile")

        def step():
            batch, rate, _ = runs.speed(model)  # chooses products before a profile
            _, profile = runs.profile(model)
            return f"{1e3 * profile['phase', 'step'][1]:.4g} ms", \
                runs.told(table, model, f"{1e3 * batch * model.sequence / rate:.4g} ms without --profile")

        def part(name):
            _, profile = runs.profile(model)
            sums = {"products": 0.0, "attention": 0.0, "row kernels": 0.0}
            for (kind, kernel), (_, seconds) in profile.items():
                if kind == "gemm":
                    sums["products"] += seconds
                elif kind == "kernel":
                    sums["attention" if "attention" in kernel else "row kernels"] += seconds
            whole = profile["phase", "step"][1]
            sums["gaps"] = whole - sum(sums.values())
            beside = "aim: under 2 %; copies and sums of the runtime included" if name == "gaps" else ""
            return f"{100 * sums[name] / whole:.1f} %", beside

        table.row("step", step)
        for name in ["products", "attention", "row kernels", "gaps"]:
            table.row(name, lambda: part(name))


def kernel_of(name):
    """The name under which a kernel of a profile and one of a plan are compared: with --profile each parameter is
    updated on its own, and the plan counts operations of attention's two derivatives at the first."""
    return re.sub(r"_table$", "", re.sub(r"_(key|query)_grad$", "_grad", name))


def summed(entries):
    """Sums of numbers by kernel."""
    sums = {}
    for name, numbers in entries:
        name = kernel_of(name)
        sums[name] = [a + b for a, b in zip(sums.get(name, [0] * len(numbers)), numbers)]
    return sums


def launches(table, runs):
    """Each kernel's time beside the bytes and operations that the plan counts for it."""
    def total(model, found):
        """Fills in the rows, the longest time first; kernels that run in the validation alone are left out."""
        batch, profile = runs.profile(model)
        planned = summed((entry["kernel"], [entry["bytes"], entry["operations"]])
                         for entry in runs.plan(model, batch)["kernels"])
        kernels = summed((name, numbers) for (kind, name), numbers in profile.items() if kind in ("gemm", "kernel"))
        found["rows"] = sorted(((name, numbers, planned.get(name)) for name, numbers in kernels.items()
                                if numbers[0] > 0), key=lambda item: -item[1][1])
        calls, seconds = (sum(numbers[i] for _, numbers, _ in found["rows"]) for i in (0, 1))
        return f"{1e3 * seconds:.4g} ms", runs.told(table, model, f"{calls:4.4g} launches")

    def rate(seconds, planned):
        """GB/s, TFLOP/s or both: those in which a GPU at its limits would take the longer time, or a third of it."""
        size, operations = planned
        copy, product = runs.machine.copy_rate(), runs.machine.product_rate()
        least = [size * 1e-9 / copy, operations * 1e-12 / product]
        texts = [f"{1e-9 * size / seconds:.4g} GB/s, {100 * least[0] / seconds:.1f} % of the copy",
                 f"{1e-12 * operations / seconds:.4g} TFLOP/s, {100 * least[1] / seconds:.1f} % of the square product"]
        return "; ".join(text for text, time in zip(texts, least) if 3 * time >= max(least))

    def row(calls, seconds, planned):
        beside = "not in the plan" if not planned else rate(seconds, planned) if seconds > 0 else "no time"
        return f"{1e3 * seconds:.4g} ms", f"{calls:4.4g} launches, {beside}"

    for model in (runs.machine.sizes.models[name] for name in PROFILED):
        table.title(f"Kernels and products of a step of {model.name}, with --profile")
        found = {}
        table.row("all", lambda: total(model, found))
        for name, numbers, planned in found.get("rows", []):
            table.row(name, lambda: row(*numbers, planned))


GROUPS = {"trainers": speeds, "peers": peers, "shares": shares, "launches": launches}

# SPDX-License-Identifier: Apache-2.0
"""Parts of all benchmarks: compiling a trainer, running it, and reading its lines."""
import argparse
import array
import json
import os
import random
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROTA = os.path.join(ROOT, "build", "bin", "rota")


def run(command):
    """The standard output of a command; ends the benchmark with its message where it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def random_tokens(folder, vocabulary, count=1 << 20):
    """A uint16 token file."""
    path = os.path.join(folder, "tokens.bin")
    generator = random.Random(0)
    with open(path, "wb") as file:
        array.array("H", (generator.randrange(vocabulary) for _ in range(count))).tofile(file)
    return path


def model_of(name, folder, **changes):
    """The configuration `name` with some keys changed, or left out where `changes` has None, as a file in `folder`."""
    config = json.load(open(os.path.join(ROOT, "models", "configs", name, "config.json")))
    config.update(changes)
    for key in [key for key, value in changes.items() if value is None]:
        del config[key]
    path = os.path.join(folder, "config.json")
    json.dump(config, open(path, "w"))
    return path


# Models that trainers are measured with: a configuration of the repository and changes of it.
MODELS = {
    "110m": ("110m", {}),
    "gpt2": ("gpt2", {}),
    "mixture": ("110m", {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "intermediate_size": 1024,
                         "num_local_experts": 8, "num_experts_per_tok": 2, "attention_bias": None, "mlp_bias": None}),
}


def shape_of(name, dtype, folder):
    """The flags of one of MODELS in a step of 4 sequences of 512 tokens."""
    base, changes = MODELS[name]
    return ["--model", model_of(base, folder, **changes), "--batch-size", "4", "--sequence-length", "512",
            "--dtype", dtype]


def dtype_argument(description):
    """The `--dtype` of a benchmark that has no other argument, as flags of `rota compile`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32", help="of the trainers (default: f32)")
    return ["--dtype", parser.parse_args().dtype]


def limits(threads):
    """The machine's limits on `threads` threads, as `bench-limits` prints them."""
    return json.loads(run([os.path.join(ROOT, "build", "bin", "bench-limits"), str(threads)]))


def published():
    """Step times that others have published, with their sources."""
    return json.load(open(os.path.join(ROOT, "tools", "bench", "published.json")))["rows"]


def model_of_row(row, folder):
    """The configuration of a published row's own, or one of the repository with another number of layers."""
    if isinstance(row["model"], str):
        return model_of(row["model"], folder, **({"num_hidden_layers": row["layers"]} if "layers" in row else {}))
    path = os.path.join(folder, "config.json")
    json.dump(row["model"], open(path, "w"))
    return path


def compile_trainer(arguments, output, rota=ROTA):
    """Seconds that `rota compile` takes."""
    start = time.perf_counter()
    run([rota, "compile", *arguments, "-o", output])
    return time.perf_counter() - start


def train_command(trainer, data, steps, arguments=()):
    """A run that prints events as JSON."""
    return [trainer, "--data", data, "--token-type", "uint16", "--steps", str(steps), "--log-interval", "1",
            "--eval-steps", "1", "--json", *arguments]


def train(trainer, data, steps, arguments=()):
    """The events of that run."""
    return [json.loads(line) for line in run(train_command(trainer, data, steps, arguments)).splitlines()]


def alternate(settings, arguments, folder, rounds, steps=3):
    """Compiles a trainer for each of the named settings, arguments beside `arguments`, and runs all of them in turn,
    so that a slow minute of the machine affects each; by name, the events of each round."""
    data = random_tokens(folder, 32000)
    for number, more in enumerate(settings.values()):
        compile_trainer([*arguments, *more], os.path.join(folder, f"trainer-{number}"))
    events = {name: [] for name in settings}
    for _ in range(rounds):
        for number, name in enumerate(settings):
            events[name].append(train(os.path.join(folder, f"trainer-{number}"), data, steps))
    return events


def throughput(events):
    """Tokens per second of the fastest step after the first."""
    return max(event["tokens_per_second"] for event in events if event["event"] == "step" and event["step"] > 1)


def temporary():
    return tempfile.TemporaryDirectory(prefix="rota-bench-")

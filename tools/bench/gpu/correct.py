# SPDX-License-Identifier: Apache-2.0
"""Trainers on a GPU against numbers that were made without one, the correctness part of the GPU benchmark: families
against f64 references of transformers, wide models against the same run on CPUs, meshes that share the GPU against one
rank, recorded steps against steps that are not, and continued runs against whole ones."""
import array
import concurrent.futures
import json
import math
import os
import random
import shutil
import struct

from machine import Failure, call, made, reason_beside

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
GOLDEN = os.path.join(ROOT, "test", "end-to-end", "golden")

FAMILIES = ["tied", "grouped", "gpt2", "gpt2-gelu", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "olmo2", "mixtral",
            "qwen3-moe", "deepseek-mtp", "gpt-oss"]
# A model, ranks that share the GPU, microbatches, and whether the numbers are the bits of one rank.
MESHES = [
    ("grouped", "stage=4", 4, True),
    ("grouped", "stage=2 --repeats 2 --schedule interleaved-1f1b --remat full --split-backward", 4, True),
    ("grouped", "fsdp=2,stage=2 --repeats 2 --weight-gather per-repeat", 4, False),
    ("grouped", "tensor=2,data=2 --shard-optimizer", 4, False),
    ("tied", "context=4 --context-exchange ring", 4, False),
    ("tied", "context=4 --context-exchange balanced-ring", 4, False),
    ("grouped", "stage=2 --schedule dualpipev --pairs", 4, True),
    ("mixtral", "expert=2,stage=2 --schedule 1f1b", 2, False),
    ("deepseek", "expert=4", 2, False),
]
# A head of each size that a kernel is made for. The matrix units of GPUs take heads in bf16.
WIDE = {
    "llama-64": {"model_type": "llama", "num_attention_heads": 4, "num_key_value_heads": 2},
    "qwen3-128": {"model_type": "qwen3", "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 128},
    "gemma3-256": {"model_type": "gemma3_text", "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 256,
                   "query_pre_attn_scalar": 256, "sliding_window": 96, "layer_types": ["sliding_attention",
                                                                                      "full_attention"],
                   "hidden_activation": "gelu_pytorch_tanh"},
    "mixtral-64": {"model_type": "mixtral", "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4,
                   "num_experts_per_tok": 2},
}
COMMON = {"hidden_act": "silu", "hidden_size": 256, "initializer_range": 0.05, "intermediate_size": 512,
          "max_position_embeddings": 512, "num_hidden_layers": 2, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
          "tie_word_embeddings": False, "vocab_size": 1001}
WIDE_SHAPE = (4, 200)  # sequences and tokens; the latter is no multiple of a tile
DRY_WIDE = {"hidden_size": 64, "intermediate_size": 96, "vocab_size": 61}
RECORDED_MESHES = [0, 5, 6, 7]
# A dry run compares these: an emulated GPU is slow, and its tests have the rest.
DRY_FAMILIES, DRY_MODELS, DRY_MESHES = ["grouped"], ["llama-64"], [0, 2]
SAMPLES = 4096  # most values of a tensor in a reference, which is random bytes for an archive
TRAINED_TOKENS = 8192  # 5 % of them, for validation, exceed a sequence
ALL = "loss,gradients,loss-curve"
# Greatest error of a tensor, as a share of its greatest value.
TOLERANCE = {"golden": 1e-5, "f32": 1e-4, "bf16": 6e-2}
# In bf16 a router may choose another expert for a token, so that gradients of experts are others: the loss is compared.
CHOOSES = {"mixtral-64"}


def read_header(file):
    """The header of a .safetensors file, which is then at its data."""
    size, = struct.unpack("<Q", file.read(8))
    return json.loads(file.read(size))


def read_tensors(path):
    """The numbers of a .safetensors file by name."""
    with open(path, "rb") as file:
        header, data = read_header(file), file.read()
    header.pop("__metadata__", None)
    codes = {"F32": "f", "F64": "d", "I32": "i", "I64": "q"}
    return {name: array.array(codes[entry["dtype"]], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


def write_tensors(path, tensors):
    """tensors: {name: (type, shape, array)}."""
    header, data = {}, b""
    for name, (kind, shape, values) in tensors.items():
        begin, data = len(data), data + values.tobytes()
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def write_tokens(path, sequences, length, vocabulary):
    tokens = array.array("i", random.Random(0).choices(range(vocabulary), k=sequences * (length + 1)))
    write_tensors(path, {"tokens": ("I32", [sequences, length + 1], tokens)})


def sample(values):
    """At most SAMPLES values. Their distance is odd, so that they have all columns of the usual widths."""
    return values[::len(values) // SAMPLES | 1] if len(values) > SAMPLES else values


def worst(actual, expected):
    """(greatest error, its tensor) of the tensors that the actual file has. The other may have samples of them."""
    actual, expected = read_tensors(actual), read_tensors(expected)
    if not actual:
        raise Failure("no tensor was written")
    errors = []
    for name, values in actual.items():
        beside = expected[name]
        if len(beside) != len(values):
            values = sample(values)
        if len(beside) != len(values):
            raise Failure(f"'{name}': expected {len(beside)} values, got {len(values)}")
        if not all(map(math.isfinite, values)):
            raise Failure(f"'{name}' has values that are not finite")
        errors.append((max(abs(a - b) for a, b in zip(values, beside)) / (max(map(abs, beside)) or 1.0), name))
    return max(errors)


def golden_length(name):
    with open(os.path.join(GOLDEN, name, "tokens.safetensors"), "rb") as file:
        return read_header(file)["tokens"]["shape"][1] - 1


def golden_options(name):
    return ["--model", os.path.join(GOLDEN, name), "--batch-size", "8", "--sequence-length", str(golden_length(name))]


def near(actual, expected, tolerance):
    error, tensor = worst(actual, expected)
    if error > tolerance:
        raise Failure(f"error {error:.3g} in '{tensor}', at most {tolerance:g}")
    return f"{error:.2g}", f"'{tensor}', at most {tolerance:g}"


def equal(actual, expected, what):
    with open(actual, "rb") as one, open(expected, "rb") as other:
        if one.read() != other.read():
            error, tensor = worst(actual, expected)
            raise Failure(f"bits differ from {what}: error {error:.3g} in '{tensor}'")
    return "equal bits", what


def mesh_name(number):
    return "{}, {}".format(MESHES[number][0], MESHES[number][1].replace(" --", ", "))


class Cases:
    """The programs and references that jobs() makes in a folder, and the comparisons of rows()."""

    def __init__(self, folder, device):
        self.folder, self.device = os.path.join(folder, "correct"), device
        is_full = device == "cuda"
        self.families = FAMILIES if is_full else DRY_FAMILIES
        self.wide_models = list(WIDE) if is_full else DRY_MODELS
        self.meshes = range(len(MESHES)) if is_full else DRY_MESHES

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def trainer(self, name):
        return made(self.path(name))

    def golden_trainers(self):
        """{trainer: (golden model, options of its compilation)}. One-rank trainers are named by microbatches."""
        listed = {f"{name}-1": (name, []) for name in self.families}
        listed["generate"] = ("grouped", ["--samples"])
        for number in self.meshes:
            name, mesh, microbatches, is_same = MESHES[number]
            parts = ["--microbatches", str(microbatches)]
            listed[f"mesh-{number}"] = (name, [*parts, "--mesh", *mesh.split()])
            if is_same:
                listed[f"{name}-{microbatches}"] = (name, parts)
        return listed

    def jobs(self, compiler):
        """What compiles all trainers and computes the references that no file has."""
        os.makedirs(self.path("golden"), exist_ok=True)
        with open(self.path("data"), "wb") as file:
            file.write(bytes(7 * i * i % 37 for i in range(TRAINED_TOKENS)))
        trainers = self.golden_trainers()
        for name in {name for name, _ in trainers.values()}:
            shutil.copytree(os.path.join(GOLDEN, name), self.path("golden", name), dirs_exist_ok=True)
        listed = [lambda trainer=trainer, name=name, options=options: compiler.trainer(
            self.path(trainer), [*golden_options(name), *options]) for trainer, (name, options) in trainers.items()]
        return listed + [lambda: self.prepare_generation(compiler)] + \
            [lambda name=name: self.prepare_wide(name, compiler) for name in self.wide_models]

    def prepare_generation(self, compiler):
        with reason_beside(self.path("generated")):
            compiler.trainer(self.path("generate-cpu"), [*golden_options("grouped"), "--samples"], "cpu")
            with open(self.path("generated"), "w") as file:
                file.write(self.generate("generate-cpu"))
            os.remove(self.path("generate-cpu"))

    def prepare_wide(self, name, compiler):
        config, (sequences, length) = {**COMMON, **WIDE[name]}, WIDE_SHAPE
        if self.device == "simt":
            config, sequences, length = {**config, **DRY_WIDE}, 2, 24
        os.makedirs(self.path(name + ".model"), exist_ok=True)
        with open(self.path(name + ".model", "config.json"), "w") as file:
            json.dump(config, file)
        write_tokens(self.path(name + ".tokens"), sequences, length, config["vocab_size"])
        shape = ["--model", self.path(name + ".model"), "--batch-size", str(sequences), "--sequence-length",
                 str(length), "--microbatches", "2"]
        for kind in ["f32", "bf16"]:
            compiler.trainer(self.path(f"{name}-{kind}"), [*shape, "--dtype", kind])
        with reason_beside(self.path(name + ".expected")):
            compiler.trainer(self.path(f"{name}-cpu"), [*shape, "--dtype", "f32"], "cpu")
            self.probe(f"{name}-cpu", name, name + ".whole", ALL)
            write_tensors(self.path(name + ".expected"),
                          {tensor: ("F32", [len(sample(values))], array.array("f", sample(values)))
                           for tensor, values in read_tensors(self.path(name + ".whole")).items()})
            os.remove(self.path(name + ".whole"))
            os.remove(self.path(f"{name}-cpu"))

    def probe(self, trainer, name, output, write):
        """Two steps of a wide model."""
        call([self.trainer(trainer), "probe", "--tokens", self.path(name + ".tokens"), "--steps", "2", "--write",
              write, "--learning-rate", "0.01", "--epsilon", "1e-6", "-o", self.path(output)])

    def probe_golden(self, trainer, name, output=None):
        """The output of ten steps with the settings of the golden model, and what it should be."""
        output = self.path(output or trainer + ".out")
        copy = self.path("golden", name)
        with open(os.path.join(copy, "run.json")) as file:
            run = json.load(file)
        call([self.trainer(trainer), "probe", "--tokens", os.path.join(copy, "tokens.safetensors"), "--weights",
              copy, "--write", ALL, "-o", output,
              *(word for key, value in run.items() if key != "write" for word in ["--" + key, str(value)])])
        return output, os.path.join(copy, "golden.safetensors")

    def family(self, name):
        return near(*self.probe_golden(f"{name}-1", name), TOLERANCE["golden"])

    def wide(self, name, kind):
        write = "loss,loss-curve" if kind == "bf16" and name in CHOOSES else ALL
        self.probe(f"{name}-{kind}", name, f"{name}-{kind}.out", write)
        return near(self.path(f"{name}-{kind}.out"), made(self.path(name + ".expected")), TOLERANCE[kind])

    def mesh(self, number):
        name, _, microbatches, is_same = MESHES[number]
        actual, expected = self.probe_golden(f"mesh-{number}", name)
        if not is_same:
            return near(actual, expected, TOLERANCE["golden"])
        # A trainer that several rows need writes a file for each.
        one, _ = self.probe_golden(f"{name}-{microbatches}", name, f"mesh-{number}-one.out")
        return equal(actual, one, "one rank")

    def train(self, trainer, output, *options):
        """The last event of a run of six steps that saves its weights."""
        text = call([self.trainer(trainer), "--data", self.path("data"), "--steps", "6", "--learning-rate", "0.01",
                     "--eval-interval", "3", "--eval-steps", "1", "--json", *options, "--save", self.path(output)])
        return json.loads(text.splitlines()[-1])

    def recorded(self, trainer):
        end = self.train(trainer, trainer + ".recorded")
        self.train(trainer, trainer + ".asked", "--no-recording")
        if not end["replayed_steps"]:
            raise Failure("no step was replayed")
        return equal(self.path(trainer + ".recorded"), self.path(trainer + ".asked"),
                     f"--no-recording; {end['replayed_steps']} steps replayed")

    def continued(self, trainer):
        folder = ["--checkpoint-dir", self.path(trainer + ".checkpoints")]
        shutil.rmtree(folder[1], ignore_errors=True)
        self.train(trainer, trainer + ".whole")
        self.train(trainer, trainer + ".half", *folder, "--stop-after", "3")
        self.train(trainer, trainer + ".rest", *folder)
        return equal(self.path(trainer + ".rest"), self.path(trainer + ".whole"), "a run without an end between")

    def generate(self, trainer):
        return call([self.trainer(trainer), "generate", "--prompt-tokens", "1,2,3", "--tokens", "6", "--weights",
                     self.path("golden", "grouped")]).strip()

    def generated(self):
        actual = self.generate("generate")
        with open(made(self.path("generated"))) as file:
            expected = file.read()
        if actual != expected:
            raise Failure(f"expected the tokens of a CPU, '{expected}', got '{actual}'")
        return "equal tokens", f"a CPU: {actual}"

    def sanitized(self, tool):
        """NVIDIA's checker over two steps in bf16, where it is installed."""
        program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        if not os.path.exists(program):
            return "no tool", "compute-sanitizer is not installed"
        lines = call([program, "--tool", tool, self.trainer("qwen3-128-bf16"), "probe", "--tokens",
                      self.path("qwen3-128.tokens"), "--steps", "1", "--write", "loss,gradients", "-o",
                      self.path(f"{tool}.out")]).strip().splitlines()
        # The library's own products copy by hardware that racecheck knows too little of.
        faults = [line for line in lines if "at kernel_" in line or "at rota_" in line]
        if tool != "racecheck" and "SUMMARY: 0 errors" not in lines[-1]:
            faults.append(lines[-1])
        if faults:
            raise Failure(faults[0])
        return "clean", lines[-1]

    def runs(self):
        """(name, function) of whole runs."""
        listed = [("recorded steps", lambda: self.recorded("grouped-1")),
                  ("a continued run", lambda: self.continued("llama-64-bf16")),
                  ("generate", self.generated)]
        if self.device == "cuda":
            listed += [(f"recorded steps, {what}", lambda trainer=trainer: self.recorded(trainer)) for what, trainer in
                       [("bf16", "llama-64-bf16"), ("experts", "mixtral-64-bf16"),
                        *((mesh_name(number), f"mesh-{number}") for number in RECORDED_MESHES)]]
            listed += [(f"compute-sanitizer {tool}", lambda tool=tool: self.sanitized(tool))
                       for tool in ["memcheck", "racecheck", "synccheck"]]
        return listed

    def rows(self):
        """(name, function) of each comparison."""
        return [*((f"{name}, f32, ten steps", lambda name=name: self.family(name)) for name in self.families),
                *((f"{name}, {kind}, gradients", lambda name=name, kind=kind: self.wide(name, kind))
                  for name in self.wide_models for kind in ["f32", "bf16"]),
                *((mesh_name(number), lambda number=number: self.mesh(number)) for number in self.meshes),
                *self.runs()]


def compare(table, cases):
    table.title("Correctness: greatest error of a tensor as a share of its greatest value")

    def outcome(function):
        try:
            return function(), None
        except Failure as failure:
            return None, failure
        except (OSError, KeyError, ValueError) as error:
            return None, Failure(f"{type(error).__name__}: {error}")

    # Small models leave most of a GPU free.
    with concurrent.futures.ThreadPoolExecutor(6 if cases.device == "cuda" else 1) as pool:
        futures = [(name, pool.submit(outcome, function)) for name, function in cases.rows()]
        for name, future in futures:
            def measured():
                result, failure = future.result()
                if failure:
                    raise failure
                return result
            table.row(name, measured)

# SPDX-License-Identifier: Apache-2.0
"""Parts of all groups of rows of the GPU benchmark: programs, their failures, the table, and what a GPU can do."""
import concurrent.futures
import contextlib
import json
import lzma
import math
import os
import pathlib
import statistics
import subprocess
import tarfile
import threading
import time

MACHINES = pathlib.Path(__file__).resolve().parents[2] / "planner" / "machines"
# The machine of the planner whose peak is that of a GPU with this part in its name.
MACHINE_OF = {"A100": "a100-sxm-80gb", "H100": "h100-sxm-80gb", "H200": "h200-sxm", "B200": "b200"}
MOST_SECONDS = 120  # of one program


class Failure(Exception):
    """Why a row has no number."""


class Deadline:
    """The time at which measuring ends; rows that come later fail at once."""
    at = math.inf


def call(command, environment=None):
    """The standard output of a program; Failure with the last line of its errors."""
    seconds = min(MOST_SECONDS, Deadline.at - time.monotonic())
    if seconds <= 0:
        raise Failure("the deadline has passed")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds,
                              env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        raise Failure(f"{os.path.basename(command[0])} took more than {seconds:.0f} s") from None
    except OSError as error:
        raise Failure(str(error)) from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or [f"exit status {done.returncode}"]
        raise Failure(next((line for line in lines if "rror" in line), lines[-1]))
    return done.stdout


@contextlib.contextmanager
def reason_beside(path):
    """Makes what is at the path; a failure is written to PATH.failed."""
    try:
        yield
    except Failure as failure:
        with open(path + ".failed", "w") as file:
            file.write(str(failure))


def made(path):
    """The path, or the failure of what should have made it."""
    if os.path.exists(path + ".failed"):
        with open(path + ".failed") as file:
            raise Failure(file.read())
    return path


def remembered(store, key, measure):
    """The result of measure() of the first call with this key, or its failure."""
    if key not in store:
        try:
            store[key] = measure()
        except Failure as failure:
            store[key] = failure
    if isinstance(store[key], Failure):
        raise store[key]
    return store[key]


class Compiler:
    """Writes trainers and plans for one device."""

    def __init__(self, programs, device, target_gpu):
        self.programs, self.device = programs, device
        self.options = {"cpu": [], "simt": ["--unchecked"], "cuda": ["--target-gpu", target_gpu] if target_gpu else []}

    def program(self, name):
        return os.path.join(self.programs, name)

    def trainer(self, path, options, device=None):
        device = device or self.device
        with reason_beside(path):
            call([self.program("rota"), "compile", "--device", device, "--target-cpu", "x86-64-v3",
                  *self.options[device], *options, "-o", path])

    def plan(self, path, options):
        """The plan of a trainer as JSON; times are those of an H100."""
        with reason_beside(path), open(path, "w") as file:
            file.write(call([self.program("rota"), "plan", "--device", self.device, "--machine", "h100-sxm-80gb",
                             "--explain", "--json", *options]))


def run_jobs(jobs):
    """Calls functions on all cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for future in [pool.submit(job) for job in jobs]:
            future.result()


def archive(folder):
    """Trainers have most bytes in common: a dictionary over many of them makes of all what a few take."""
    folder = folder.rstrip("/")
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 256 << 20}]
    with lzma.open(folder + ".tar.xz", "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w") as file:
        file.add(folder, os.path.basename(folder))


class Table:
    def __init__(self):
        self.failures = 0

    def title(self, text):
        print(f"\n{text}", flush=True)

    def row(self, name, measure):
        """measure() is (value, what stands beside it)."""
        try:
            value, beside = measure()
        except Failure as failure:
            self.failures += 1
            value, beside = "failed", str(failure)[:240]
        print(f"  {name:36} {value:>18}   {beside}", flush=True)


class Clocks:
    """The clock of a GPU's multiprocessors and its power while a group of rows is measured, read each half second."""

    def __enter__(self):
        self.samples, self.ended = [], threading.Event()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        busy = [sample for sample in self.samples if sample[2] > 0]
        if busy:
            clock, power = (statistics.median(sample[i] for sample in busy) for i in (0, 1))
            print(f"  (clock {clock:.0f} MHz, {power:.0f} W: medians of the seconds in which the GPU worked)")

    def read(self):
        while not self.ended.wait(0.5):
            try:
                done = subprocess.run(["nvidia-smi", "--query-gpu=clocks.sm,power.draw,utilization.gpu",
                                       "--format=csv,noheader,nounits", "--id=0"], capture_output=True, text=True,
                                      timeout=5)
                self.samples.append(tuple(map(float, done.stdout.split(","))))
            except (OSError, ValueError, subprocess.TimeoutExpired):
                return


class Machine:
    """The prepared programs on this machine's GPU, and its limits, which the first row that asks measures."""

    def __init__(self, folder, sizes, device):
        self.folder, self.sizes, self.device = folder, sizes, device
        # Products are measured anew in each run of the benchmark.
        self.environment = {"ROTA_ALGORITHM_FILE": os.path.join(folder, "algorithms")}
        if os.path.exists(self.environment["ROTA_ALGORITHM_FILE"]):
            os.remove(self.environment["ROTA_ALGORITHM_FILE"])
        self.gpu = "?"
        self.limits = {}

    def path(self, *names):
        return made(os.path.join(self.folder, *names))

    def seconds(self, code, *arguments):
        found = json.loads(call([os.path.join(self.folder, "bench-gpu"), self.path(code) + ".so",
                                 *map(str, arguments)], self.environment))
        self.gpu = found["device"]
        if not found["seconds"] > 0 or not math.isfinite(found["seconds"]):
            raise Failure(f"expected a time, got {found['seconds']} s")
        return found["seconds"]

    def op(self, name):
        return self.seconds(name, "op", self.path(name) + ".json")

    def product(self, m, n, k, *flags):
        """TFLOP/s."""
        return 2e-12 * m * n * k / self.seconds("rows-0", "gemm", m, n, k, *flags)

    def copy_rate(self):
        """GB/s, read and written."""
        size = self.sizes.copy_bytes
        return remembered(self.limits, "copy", lambda: 2e-9 * size / self.seconds("rows-0", "copy", size))

    def product_rate(self):
        """TFLOP/s of a square product."""
        n = self.sizes.square
        return remembered(self.limits, "product", lambda: self.product(n, n, n, 0, 1, 0))

    def peak(self):
        """TFLOP/s of the datasheet, else of the measured product, and which of the two."""
        measured = self.product_rate()
        for name, machine in MACHINE_OF.items():
            if name in self.gpu:
                types = json.loads((MACHINES / f"{machine}.json").read_text())["types"]
                return types["bf16"]["flops_per_second"] * 1e-12, "of the datasheet"
        return measured, "of the square product"


def share(value, limit, name):
    """The value as a share of what limit() measures."""
    try:
        return f"{100 * value / limit():.1f} % of {limit():.3g} {name}"
    except Failure:
        return f"no {name}"

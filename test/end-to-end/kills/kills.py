# SPDX-License-Identifier: Apache-2.0
"""Kills training runs at random moments and lets them go on from their
checkpoints. Fails unless

  - the final weights have the bits of a run that nothing interrupted,
  - each checkpoint that a run named is there afterwards, or a later one,
  - each checkpoint is whole: its manifest, and its files with their sizes,
  - processes that mpirun ends name the checkpoint that the run goes on from.

    kills.py TRAINER FOLDER KILLS [--seed N] [--mpi RANKS]

Half of the kills come while a checkpoint is being written, the others at any
time. With --mpi, one of the processes is killed, and mpirun ends the others.
KILLS may be 10000, by hand; a failure prints the seed of its run.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

STEPS = 120


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("trainer")
    parser.add_argument("folder")
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mpi", type=int, default=0)
    return parser.parse_args()


class Trainer:
    def __init__(self, given):
        self.given = given
        self.checkpoints = os.path.join(given.folder, "checkpoints")
        self.command = [given.trainer, "--steps", str(STEPS), "--json",
                        "--log-interval", "1", "--eval-interval", "0",
                        "--threads", "1"]
        if given.mpi:
            self.command = ["mpirun", "--allow-run-as-root", "--oversubscribe",
                            "-n", str(given.mpi), *self.command,
                            "--ranks", "mpi"]

    def start(self, save, log, *more):
        return subprocess.Popen(
            [*self.command, "--save", save, *more], stdout=log,
            stderr=subprocess.STDOUT)

    def resumed(self, save, log):
        return self.start(save, log, "--checkpoint-dir", self.checkpoints,
                          "--checkpoint-interval", "5", "--resume", "auto")

    def kill(self, process, source):
        """One process of the run, and mpirun ends the others."""
        victims = [process.pid]
        if self.given.mpi:
            try:
                path = f"/proc/{process.pid}/task/{process.pid}/children"
                with open(path) as file:
                    victims = [int(pid) for pid in file.read().split()]
            except OSError:
                victims = []
        if victims:
            try:
                os.kill(source.choice(victims), signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended by itself
        process.wait()


def is_being_written(folder):
    return os.path.isdir(folder) and any(
        name.endswith(".partial") for name in os.listdir(folder))


def wait_for_moment(process, folder, source, seconds):
    """Until a random moment; half of them while a checkpoint is written."""
    if source.random() < 0.5:
        try:
            process.wait(source.random() * seconds)
        except subprocess.TimeoutExpired:
            pass
        return
    # From the second one on that this run writes, so that runs get on.
    for _ in range(source.randrange(1, 4)):
        while process.poll() is None and is_being_written(folder):
            time.sleep(0.0002)
        while process.poll() is None and not is_being_written(folder):
            time.sleep(0.0002)
    time.sleep(source.random() * 0.01)


def step_of(name):
    return int(name.split("-")[1])


def whole(folder):
    """The steps of the checkpoints, each of which is complete."""
    steps = []
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        if not name.startswith("step-"):
            continue
        path = os.path.join(folder, name)
        with open(os.path.join(path, "manifest.json")) as file:
            manifest = json.load(file)
        assert manifest["run"]["step"] == step_of(name), name
        for entry in manifest["files"]:
            size = os.path.getsize(os.path.join(path, entry["name"]))
            assert size == entry["bytes"], (name, entry, size)
        steps.append(step_of(name))
    return sorted(steps)


def announced(log):
    """The steps of the checkpoints that the run has named as whole."""
    with open(log, errors="replace") as file:
        return [int(step)
                for step in re.findall(r'"checkpoint [^"]*/step-(\d+)"',
                                       file.read())]


def check_advice(log, steps):
    """Each process that was told to end names a checkpoint, if there is one."""
    with open(log, errors="replace") as file:
        lines = file.read().splitlines()
    for line, after in zip(lines, [*lines[1:], ""]):
        if " was told to end at " in line and steps:
            assert "the same command goes on from" in after, (line, after)


def run_round(trainer, expected, source, seconds, left):
    """Kills and starts again until the training is over. Returns the kills,
    and those of them that came while a checkpoint was written."""
    folder = trainer.checkpoints
    shutil.rmtree(folder, ignore_errors=True)
    save = os.path.join(trainer.given.folder, "weights")
    log_path = os.path.join(trainer.given.folder, "log")
    kills = inside = newest = 0
    steps = []
    while True:
        with open(log_path, "w") as log:
            process = trainer.resumed(save, log)
            if kills < left:
                wait_for_moment(process, folder, source, seconds)
            else:
                process.wait()
        inside += process.poll() is None and is_being_written(folder)
        finished = process.poll() is not None
        if not finished:
            kills += 1
            trainer.kill(process, source)
        newest = max([newest, *announced(log_path)])
        before, steps = steps, whole(folder)
        check_advice(log_path, before)
        assert max(steps, default=0) >= newest, (steps, newest)
        if not finished:
            continue
        if process.returncode != 0:
            with open(log_path) as log:
                sys.exit("the trainer failed:\n" + log.read())
        with open(save, "rb") as file:
            assert file.read() == expected, "the weights differ"
        assert steps[-1] == STEPS, steps
        return kills, inside


def main():
    given = arguments()
    shutil.rmtree(given.folder, ignore_errors=True)
    os.makedirs(given.folder)
    trainer = Trainer(given)
    reference = os.path.join(given.folder, "reference")
    start = time.monotonic()
    assert trainer.start(reference, subprocess.DEVNULL).wait() == 0
    seconds = time.monotonic() - start
    with open(reference, "rb") as file:
        expected = file.read()
    kills = inside = rounds = 0
    while kills < given.kills:
        seed = f"{given.seed}.{rounds}"
        try:
            done = run_round(trainer, expected, random.Random(seed), seconds,
                             given.kills - kills)
        except AssertionError:
            print(f"round with the seed {seed}", file=sys.stderr)
            raise
        kills, inside, rounds = kills + done[0], inside + done[1], rounds + 1
    print(f"{kills} kills, {inside} of them while a checkpoint was written, in "
          f"{rounds} runs: the bits of a run that nothing interrupted")


main()

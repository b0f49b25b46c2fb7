# SPDX-License-Identifier: Apache-2.0
"""Runs of line-trainer in folders that are full, read-only or in use.

    checkpoint_folder.py CASE FOLDER

Prints a line with the outcome; "skipped: ..." where this machine cannot make
such a folder. CASE: full, limited, read-only, in-use, signals, unmet,
validation, mpi-validation,
not-text.
"""
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time

TRAINER = ["line-trainer", "2,3,2,1,1", "--resume", "never",
           "--checkpoint-interval", "1"]


def run(folder, *arguments, **options):
    return subprocess.run(
        TRAINER + ["--checkpoint-dir", folder, *arguments],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)


def start(folder):
    """A run that does not end by itself, after its first checkpoint."""
    process = subprocess.Popen(
        TRAINER + ["--checkpoint-dir", folder, "--steps", "1000000000"],
        stdout=subprocess.DEVNULL)
    while not whole(folder):
        time.sleep(0.01)
        assert process.poll() is None
    return process


def whole(folder):
    if not os.path.exists(folder):
        return []
    return sorted(name for name in os.listdir(folder)
                  if name.startswith("step-"))


def check(folder, count):
    """Whole checkpoints are there, `count` or more, and nothing unfinished."""
    assert len(whole(folder)) >= count, os.listdir(folder)
    for name in os.listdir(folder):
        assert name == "lock" or os.path.exists(
            os.path.join(folder, name, "manifest.json")), name


def mount(folder, size):
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if mounted.returncode != 0:
        print("skipped: no folder may be mounted here")
        sys.exit()


def report(folder, outcome):
    # Before the error stand the last events of the ranks.
    error = outcome.stderr[outcome.stderr.find("error: "):]
    print(f"exit code {outcome.returncode}, "
          + error.strip().replace(folder, "FOLDER"))


def full(folder):
    mount(folder, "256k")
    try:
        outcome = run(folder, "--keep-last", "1000", "--steps", "1000")
        check(folder, 2)
        report(folder, outcome)
    finally:
        subprocess.run(["umount", folder], check=True)


def limited(folder):
    """No file may be larger than 600 bytes."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))

    outcome = run(folder, "--steps", "9", preexec_fn=limit)
    check(folder, 0)
    report(folder, outcome)


def read_only(folder):
    mount(folder, "1m")
    try:
        assert run(folder, "--steps", "2").returncode == 0
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        outcome = run(folder, "--steps", "4")
        check(folder, 2)
        report(folder, outcome)
    finally:
        subprocess.run(["umount", folder], check=True)


def in_use(folder):
    first = start(folder)
    outcome = run(folder)
    outcome.stderr = outcome.stderr.replace(str(first.pid), "PID")
    report(folder, outcome)
    first.kill()
    first.wait()
    print(f"after its end: exit code {run(folder, '--steps', '3').returncode}")


def signals(folder):
    for number in (signal.SIGTERM, signal.SIGINT):
        shutil.rmtree(folder)
        process = start(folder)
        process.send_signal(number)
        code = process.wait()
        check(folder, 1)
        print(f"{number.name}: exit code {code}")
    # A run without an interval: the only checkpoint is what was asked for.
    shutil.rmtree(folder)
    TRAINER[-1] = "0"
    log = folder + ".log"
    with open(log, "w") as output:
        process = subprocess.Popen(
            TRAINER + ["--checkpoint-dir", folder, "--steps", "1000000000"],
            stdout=output)
    while " 1/1000000000" not in open(log).read():
        time.sleep(0.01)
    process.send_signal(signal.SIGUSR1)
    while not whole(folder):
        time.sleep(0.01)
        assert process.poll() is None
    print("SIGUSR1: a checkpoint, and the run goes on")
    process.kill()
    process.wait()


def unmet(folder):
    """A signal to ranks that do not wait for each other at a step's end: the
    run that goes on saves the bits of one that was never stopped."""
    trainer = ["line-trainer", "2,3,2,1,1", "--steps", "1000000000"]
    limit = ["--gradient-clip", "0.01"]
    for free, waiting in ((["--gradient-clip", "0"],
                           ["--gradient-clip", "1e30"]),
                          (limit + ["--post-validate"], limit)):
        shutil.rmtree(folder)
        with open(folder + ".log", "w") as output:
            process = subprocess.Popen(
                trainer + free + ["--checkpoint-dir", folder], stdout=output)
        while " 1/1000000000" not in open(folder + ".log").read():
            time.sleep(0.01)
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        code = process.wait()
        [name] = whole(folder)
        check(folder, 1)
        step = int(name.removeprefix("step-"))
        assert open(folder + ".log").read().endswith(
            f"\ninterrupted after step {step} of 1000000000; the same command "
            "goes on\n")
        stop = str(step + 3)
        saved = []
        for arguments in (free + ["--checkpoint-dir", folder], waiting):
            path = folder + ".weights"
            subprocess.run(
                trainer + arguments + ["--stop-after", stop, "--save", path],
                stdout=subprocess.DEVNULL, check=True)
            saved.append(open(path, "rb").read())
        print(f"{' '.join(free)}: exit code {code}, "
              f"{'the same' if saved[0] == saved[1] else 'other'} weights")


def validation(folder, *launcher, on_mpi=()):
    """A validation that would take hours keeps no checkpoint waiting, and a
    signal ends it: the run that goes on saves the bits of one that was never
    stopped."""
    endless = ["--eval-steps", "100000000", "--keep-best",
               "--checkpoint-interval", "3", "--eval-interval", "4"]
    for clip in ("0", "1"):
        trainer = ["line-trainer", "2,3,2,1,1", "--steps", "1000000000",
                   "--gradient-clip", clip]
        saving = ["--checkpoint-dir", folder]
        shutil.rmtree(folder)
        process = subprocess.Popen([*launcher, *trainer, *on_mpi, *saving, *endless],
                                   stdout=subprocess.DEVNULL)
        wait_until(lambda: whole(folder) == ["step-0000000003"], process)
        ranks = [process.pid]
        if launcher:
            path = f"/proc/{process.pid}/task/{process.pid}/children"
            ranks = [int(pid) for pid in open(path).read().split()]
        time.sleep(0.1)  # into the validation
        os.kill(ranks[-1], signal.SIGTERM)
        wait_until(lambda: "step-0000000004" in whole(folder), process)
        # mpirun first: told of several killed ranks at once, it may wait for ever.
        kill([process.pid, *(rank for rank in ranks if rank != process.pid)])
        process.wait()
        with open(f"{folder}/step-0000000004/manifest.json") as file:
            assert "best_validation" not in json.load(file)["run"]["values"]
        saved = []
        for arguments in (saving, []):
            path = folder + ".weights"
            subprocess.run(
                trainer + arguments + ["--stop-after", "7", "--save", path],
                stdout=subprocess.DEVNULL, check=True)
            saved.append(open(path, "rb").read())
        print(f"--gradient-clip {clip}: "
              f"{'the same' if saved[0] == saved[1] else 'other'} weights")


def kill(processes):
    """Kills processes, children or not; returns when their locks are free."""
    for pid in processes:
        try:
            handle = os.pidfd_open(pid)
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        except ProcessLookupError:
            continue  # it has ended by itself
        ended, _, _ = select.select([handle], [], [], 60)
        assert ended, f"process {pid} does not end"
        os.close(handle)


def mpi_validation(folder):
    validation(folder, "mpirun", "--allow-run-as-root", "--oversubscribe", "-n",
               "4", on_mpi=["--ranks", "mpi", "--threads", "1"])


def wait_until(condition, process):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            process.kill()
            raise TimeoutError
        time.sleep(0.01)


def not_text(folder):
    """A name that is not UTF-8."""
    name = os.fsencode(folder) + b"/a\xffz"
    for steps in ("2", "3"):
        lines = subprocess.run(
            TRAINER[:2] + ["--checkpoint-dir", name, "--stop-after", steps,
                           "--json", "--metrics", name + b".metrics"],
            stdout=subprocess.PIPE, check=True).stdout.splitlines()
        for line in lines:
            json.loads(line)
    print("goes on after step 2" if b"goes on after step 2" in b"".join(lines)
          else "begins anew")
    for action in ("list", "show", "verify"):
        told = subprocess.run(
            ["rota", "checkpoint", action, name, "--json"],
            stdout=subprocess.PIPE, check=True).stdout
        for text in [told] if action == "show" else told.splitlines():
            assert "a\ufffdz" in json.loads(text)["checkpoint"]
    print("valid JSON")


if __name__ == "__main__":
    case, where = sys.argv[1:]
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    {"full": full, "limited": limited, "read-only": read_only,
     "in-use": in_use, "signals": signals, "unmet": unmet,
     "validation": validation, "mpi-validation": mpi_validation,
     "not-text": not_text}[case](where)

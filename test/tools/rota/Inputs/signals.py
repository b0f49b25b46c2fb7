# SPDX-License-Identifier: Apache-2.0
"""signals.py SOURCE FOLDER CASE: sends a signal to `rota train` while it links,
assembles or trains, or kills a rank under mpirun. Fails unless the process ends as the
signal says and leaves no process and no temporary file."""
import atexit
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

source, folder, case = sys.argv[1:]
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored where nohup runs the tests
MARK = f"ROTA_SIGNALS={os.getpid()}-{time.time_ns()}"


def processes():
    """The numbers of all live processes that inherited MARK."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if MARK.encode() in file.read().split(b"\0"):
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass  # it ended meanwhile, or another user's
    return found


@atexit.register
def end_all():
    for pid in processes():  # of a case that failed
        if pid != os.getpid():
            os.kill(pid, signal.SIGKILL)


def wait_for(condition, what, seconds=150):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{case}: waited in vain: {what}"
        time.sleep(0.05)


def start(arguments, prefix=()):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(f"{folder}/tmp")
    name, value = MARK.split("=")
    environment = {**os.environ, name: value, "TMPDIR": f"{folder}/tmp",
                   "OMPI_MCA_orte_tmpdir_base": folder}
    command = [*prefix, "rota", "train", "--model",
               f"{source}/models/examples/two-kinds.mlir", "--data",
               f"{source}/LICENSE", "--log-interval", "1", "--steps", "1000000",
               "--json", *arguments]
    with open(f"{folder}/log", "wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log,
                                env=environment)


def log():
    with open(f"{folder}/log") as file:
        return file.read()


def expect_end(process, code):
    got = process.wait(timeout=150)
    assert got == code, f"{case}: expected {code}, got {got}: {log()}"
    wait_for(lambda: not processes(), f"the end of {processes()}", 20)
    # A rank that fails leaves its last events.
    left = [name for name in os.listdir(f"{folder}/tmp")
            if not name.startswith("rota-flight-")]
    assert not left, f"{case}: left behind: {left}"
    print(f"{case}: exit status {got}, nothing is left")


def trains():
    return '"event":"step"' in log()


moment, _, name = case.partition("-")
number = getattr(signal, f"SIG{name}", None)
if moment == "training":
    process = start(["--save", f"{folder}/saved"])
    wait_for(trains, "a step")
    process.send_signal(number)
    # These end the run after its step, with weights saved.
    ends_after_step = name in ("INT", "TERM", "HUP")
    expect_end(process, 0 if ends_after_step else -number)
    assert os.path.exists(f"{folder}/saved") == ends_after_step
elif moment in ("linking", "linking_elsewhere", "assembling"):
    # Its name says whether the linker behind it writes to standard output.
    names = {"linking": "clang++-22", "linking_elsewhere": "g++",
             "assembling": "ptxas"}
    os.makedirs(f"{folder}.tools", exist_ok=True)
    tool = f"{folder}.tools/{names[moment]}"
    with open(tool, "w") as file:
        file.write('#!/bin/sh\n: > "$TMPDIR/../started"\nexec sleep 100\n')
    os.chmod(tool, 0o755)
    process = start(["--device", "cuda", "--ptxas", tool]
                    if moment == "assembling" else ["--linker", tool])
    wait_for(lambda: os.path.exists(f"{folder}/started"), "the tool")
    process.send_signal(number)
    expect_end(process, -number)
elif moment == "mpirun":
    process = start(
        ["--mesh", "stage=2", "--ranks", "mpi", "--threads", "1"],
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"])
    wait_for(trains, "a step")

    def is_rank(pid):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[0] not in (b"mpirun", b"")

    os.kill([pid for pid in processes() if is_rank(pid)][0], signal.SIGKILL)
    expect_end(process, 128 + signal.SIGKILL)

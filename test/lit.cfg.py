# SPDX-License-Identifier: Apache-2.0
# Tests of IR, passes and tools: RUN lines checked with FileCheck.
import contextlib
import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys

import lit.formats

config.name = "rota"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt", "README.md"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.build, "test")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.build, "bin"), os.path.join(config.llvm, "bin"),
     os.environ["PATH"]])
# Scripts of all folders read and write files of safetensors by one module.
config.environment["PYTHONPATH"] = os.path.join(config.test_source_root,
                                                "end-to-end", "Inputs")
# More random cases, or others.
for variable in ("ROTA_TEST_CASES", "ROTA_TEST_SEED"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
# Trainers of one suite share the code of equal tasks and kernels; that of earlier
# compilers goes.
config.environment["ROTA_CODE_CACHE"] = os.path.join(config.test_exec_root,
                                                     "code-cache")
with contextlib.suppress(FileNotFoundError):
    for entry in os.scandir(config.environment["ROTA_CODE_CACHE"]):
        if entry.stat().st_mtime < os.stat(os.path.join(
                config.build, "bin", "rota")).st_mtime:
            os.remove(entry)
# Every run of rota-opt also checks that what it prints reads back the same.
config.substitutions.append(("rota-opt", "rota-opt --verify-roundtrip"))
config.substitutions.append(("%source", config.source))
config.substitutions.append(("%build", config.build))
config.substitutions.append(("%include", os.path.join(config.llvm, "include")))
config.substitutions.append(("%python", sys.executable))

# Runs of several processes need mpirun, and mpi.h when the runtime was built.
if config.mpi and shutil.which("mpirun"):
    config.available_features.add("mpirun")
# PyTorch, in lit's own Python or the one that the variable names, and perhaps
# transformers and PEFT.
torch_python = os.environ.get("ROTA_TORCH_PYTHON", sys.executable)
config.substitutions.append(("%torch-python", torch_python))
for feature, packages in (("torch", ["torch"]),
                          ("transformers", ["torch", "transformers", "peft"])):
    if subprocess.run([torch_python, "-c", "import sys, importlib.util as util;"
                       f"sys.exit(not all(map(util.find_spec, {packages})))"
                       ]).returncode == 0:
        config.available_features.add(feature)
# NVIDIA's assembler, where the compiler finds it.
if shutil.which("ptxas", path=os.pathsep.join(
        [os.environ["PATH"], "/usr/local/cuda/bin"])):
    config.available_features.add("ptxas")
try:
    ctypes.CDLL("libcuda.so.1")
    config.available_features.add("nvidia-driver")
except OSError:
    pass
# A package is made, installed and removed in mounts of its own, as root; a wheel
# in an environment of Python.
if os.getuid() == 0 and importlib.util.find_spec("ensurepip") and all(
        shutil.which(program)
        for program in ("cpack", "dpkg", "ldd", "readelf", "unshare")) and (
        subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
                       stderr=subprocess.DEVNULL).returncode == 0):
    config.available_features.add("package")
# A browser, for pages.
chromium = shutil.which("chromium") or shutil.which("google-chrome")
if chromium:
    config.available_features.add("chromium")
    config.substitutions.append(("%chromium", chromium))
# libFuzzer and sanitizers, when the tests were configured.
if config.fuzzer:
    config.available_features.add("fuzzer")
# A Slurm of its own: Debian's slurm-wlm and munge, as root.
system_path = os.environ["PATH"] + os.pathsep + "/usr/sbin"
if "mpirun" in config.available_features and os.getuid() == 0 and all(
        shutil.which(program, path=system_path)
        for program in ("munged", "slurmctld", "slurmd", "srun", "sbatch")):
    config.available_features.add("slurm")

// SPDX-License-Identifier: Apache-2.0
//
// The GPU kernels of one function as an object file, and its launches as JSON,
// for run-op.cpp. So kernels are compiled on one machine and measured on
// another, which needs no compiler.
// `bench-gpu-compile simt|cuda FILE.mlir FUNCTION OUTPUT` writes OUTPUT.o and
// OUTPUT.json.
#include "tools/bench/gpu/GpuOps.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using rota::bench::GpuOps;

namespace {

std::string textOf(const GpuOps::Function &function) {
  json::Array buffers, launches;
  for (const GpuOps::Buffer &buffer : function.buffers)
    buffers.push_back(json::Object{{"element", buffer.element},
                                   {"bytes", buffer.bytes},
                                   {"given", buffer.isGiven}});
  for (const GpuOps::Launch &launch : function.launches)
    launches.push_back(
        json::Object{{"kernel", launch.kernel},
                     {"grid", json::Array(launch.shape.grid)},
                     {"block", launch.shape.block},
                     {"shared", launch.shape.sharedBytes},
                     {"own_shared", launch.shape.ownSharedBytes},
                     {"arguments", json::Array(launch.arguments)}});
  return formatv("{0:2}\n",
                 json::Value(json::Object{{"buffers", std::move(buffers)},
                                          {"launches", std::move(launches)}}))
      .str();
}

bool write(const std::string &path, StringRef bytes) {
  std::error_code error;
  raw_fd_ostream file(path, error);
  file << bytes;
  file.close();
  if (!error && !file.has_error())
    return true;
  errs() << "error: cannot write '" << path << "'\n";
  file.clear_error();
  return false;
}

bool compile(bool isEmulated, StringRef path, StringRef name,
             const std::string &output) {
  auto source = MemoryBuffer::getFile(path);
  if (!source) {
    errs() << "error: " << path << ": " << source.getError().message() << "\n";
    return false;
  }
  GpuOps ops;
  if (!ops.add((*source)->getBuffer(), name))
    return false;
  auto object = ops.object({.isEmulated = isEmulated});
  return succeeded(object) && write(output + ".o", *object) &&
         write(output + ".json", textOf(ops.functions().front()));
}

} // namespace

int main(int argc, char **argv) {
  StringRef device = argc == 5 ? argv[1] : "";
  if (device != "simt" && device != "cuda") {
    errs() << "usage: bench-gpu-compile simt|cuda FILE FUNCTION OUTPUT\n";
    return 2;
  }
  return compile(device == "simt", argv[2], argv[3], argv[4]) ? 0 : 1;
}

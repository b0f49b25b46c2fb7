// SPDX-License-Identifier: Apache-2.0
#include "lowering/executable/Ptxas.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"

#include <csignal>
#include <cstdlib>
#include <utility>

using namespace mlir;

namespace rota::lowering {

FailureOr<std::string> findPtxas(Location loc, StringRef name) {
  if (name == kNoPtxas)
    return std::string();
  if (!name.empty()) {
    auto found = llvm::sys::findProgramByName(name);
    if (found && llvm::sys::fs::can_execute(*found))
      return *found;
    return emitError(loc) << "'ptxas': expected an assembler, or '" << kNoPtxas
                          << "', '" << name << "' is not there";
  }
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  SmallVector<std::string> roots;
  if (const char *home = std::getenv("CUDA_HOME"))
    roots.push_back(home);
  roots.push_back("/usr/local/cuda");
  for (const std::string &root : roots)
    if (auto found = llvm::sys::findProgramByName("ptxas", {root + "/bin"}))
      return *found;
  return std::string();
}

FailureOr<std::unique_ptr<PtxasRun>>
PtxasRun::start(Location loc, StringRef ptxas, StringRef chip, StringRef text) {
  std::unique_ptr<PtxasRun> run(new PtxasRun(loc, ptxas, chip));
  for (std::error_code error :
       {run->inputError, run->outputError, run->messagesError,
        run->inputError ? std::error_code() : run->input.write(text)})
    if (error)
      return emitError(loc)
             << "cannot write a file in memory: " << error.message();
  std::string arguments[] = {ptxas.str(), ("-arch=" + chip).str(),
                             run->input.path(), "-o", run->output.path()};
  run->process = startTool(arguments, run->messages.descriptor(),
                           run->messages.descriptor());
  return run;
}

PtxasRun::~PtxasRun() {
  if (process <= 0)
    return;
  kill(process, SIGTERM);
  waitForTool(process);
}

FailureOr<std::string> PtxasRun::finish() {
  int status = waitForTool(std::exchange(process, -1));
  auto bytes = output.read();
  if (status != 0 || !bytes || (*bytes)->getBufferSize() == 0)
    return emitError(loc) << "assembling for " << chip << " with '" << ptxas
                          << "' failed: " << firstError(messages)
                          << "; '--ptxas " << kNoPtxas << "' leaves it out";
  return (*bytes)->getBuffer().str();
}

} // namespace rota::lowering

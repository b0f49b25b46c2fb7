// SPDX-License-Identifier: Apache-2.0
//
// Runs the linker on files in memory and writes the executable whole.
#include "lowering/executable/Link.h"
#include "lowering/executable/RunTool.h"
#include "runtime/files/WriteFile.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Signals.h"

#include <cstdio>
#include <deque>
#include <dlfcn.h>
#include <link.h>

using namespace mlir;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace rota::lowering {
namespace {

LogicalResult cannotMake(Location loc, std::error_code error) {
  return emitError(loc) << "cannot make a temporary file: " << error.message();
}

FailureOr<std::string> findDriver(Location loc, const LinkOptions &options) {
  SmallVector<StringRef> names{"clang++-22", "clang++", "g++", "c++"};
  if (!options.linker.empty())
    names = {options.linker};
  for (StringRef name : names)
    if (auto found = llvm::sys::findProgramByName(name);
        found && fs::can_execute(*found)) // any path counts as found
      return *found;
  auto error = emitError(loc) << "expected a compiler driver to link with, ";
  if (!options.linker.empty())
    return error << "'" << options.linker << "' is not there";
  return error << "none of clang++-22, clang++, g++ and c++ is there (install "
                  "clang-22, or name one with --linker)";
}

FailureOr<std::string> findRuntime(Location loc, bool shared) {
  static int anchor;
  std::string program = fs::getMainExecutable(nullptr, &anchor);
  SmallString<256> library(path::parent_path(path::parent_path(program)));
  path::append(library, "lib", "librota_runtime");
  library += shared ? ".so" : ".a";
  if (fs::exists(library))
    return library.str().str();
  return emitError(loc) << "expected the runtime library at '" << library
                        << "', it is not there";
}

/// Whether a driver links with lld, which is always there with it.
bool hasLld(StringRef driver) {
  return path::filename(driver).starts_with("clang++-22");
}

/// The folder of the C library that this program runs with, in which systems
/// keep the start files of programs, too.
std::string libraryFolder() {
  Dl_info library;
  if (!dladdr(reinterpret_cast<void *>(&std::puts), &library))
    return "";
  return path::parent_path(library.dli_fname).str();
}

/// The loader that this program names, as a trainer will. Empty where it has
/// none.
std::string loaderPath() {
  std::string loader;
  auto find = [](dl_phdr_info *program, size_t, void *loader) {
    for (int i = 0; i < program->dlpi_phnum; ++i)
      if (program->dlpi_phdr[i].p_type == PT_INTERP)
        *static_cast<std::string *>(loader) = reinterpret_cast<const char *>(
            program->dlpi_addr + program->dlpi_phdr[i].p_vaddr);
    return 1; // the first one is the program, the others are libraries
  };
  dl_iterate_phdr(find, &loader);
  return loader;
}

/// lld itself, as a driver starts it for a trainer that loads the runtime: a
/// tenth of the time of a tiny trainer is the driver's. Empty on machines that
/// keep these files elsewhere.
std::vector<std::string> findLld(StringRef driver) {
  const std::string libraries = libraryFolder();
  const std::string start = libraries + "/Scrt1.o";
  const std::string loader = loaderPath();
  SmallString<128> lld;
  if (!hasLld(driver) || fs::real_path(driver, lld))
    return {};
  path::remove_filename(lld);
  path::append(lld, "ld.lld");
  for (StringRef file : {lld.str(), StringRef(start), StringRef(loader)})
    if (!fs::exists(file))
      return {};
  return {lld.str().str(),  "-pie", "--eh-frame-hdr", "-dynamic-linker", loader,
          "-L" + libraries, start};
}

LogicalResult runLinker(Location loc, ArrayRef<std::string> arguments,
                        const MemoryFile &output) {
  std::error_code error;
  MemoryFile messages("rota-linker-messages", error);
  if (error)
    return cannotMake(loc, error);
  int status = waitForTool(
      startTool(arguments, output.descriptor(), messages.descriptor()));
  if (status == 0)
    return success();
  return emitError(loc) << "linking with '" << arguments.front()
                        << "' failed: " << firstError(messages);
}

} // namespace

LogicalResult linkTrainer(Location loc, ArrayRef<StringRef> objects,
                          ArrayRef<Alias> aliases, StringRef output,
                          const LinkOptions &options) {
  auto driver = findDriver(loc, options);
  if (failed(driver))
    return failure();
  auto runtime = findRuntime(loc, options.runsHere);
  if (failed(runtime))
    return failure();
  std::error_code error;
  std::vector<std::string> arguments;
  if (options.runsHere && options.linker.empty())
    arguments = findLld(*driver);
  bool isDriver = arguments.empty();
  if (isDriver)
    arguments.push_back(*driver);
  std::deque<MemoryFile> files;
  for (StringRef object : objects) {
    MemoryFile &file = files.emplace_back("rota-object", error);
    if (!error)
      error = file.write(object);
    if (error)
      return cannotMake(loc, error);
    arguments.push_back(file.path());
  }
  const std::string prefix = isDriver ? "-Wl," : "";
  for (const auto &[symbol, target] : aliases)
    arguments.push_back(prefix + "--defsym=" + symbol + "=" + target);
  MemoryFile result("rota-trainer", error);
  if (error)
    return cannotMake(loc, error);
  arguments.insert(arguments.end(), {*runtime, prefix + "--as-needed",
                                     "-lpthread", "-ldl", "-lm", "-o"});
  SmallString<128> named; // for linkers that need a file to rename
  llvm::FileRemover remover;
  // lld is six times as fast as the default linker and writes to standard
  // output when asked to.
  if (!isDriver) {
    arguments.insert(arguments.end(), {"-", "-lc"});
  } else if (hasLld(*driver)) {
    arguments.insert(arguments.end(), {"-", "-fuse-ld=lld"});
  } else {
    if ((error = fs::createTemporaryFile("rota", "", named)))
      return cannotMake(loc, error);
    remover.setFile(named);
    llvm::sys::RemoveFileOnSignal(named);
    arguments.push_back(named.str().str());
  }
  if (failed(runLinker(loc, arguments, result)))
    return failure();
  auto executable =
      named.empty() ? result.read() : llvm::MemoryBuffer::getFile(named);
  if (!executable)
    return emitError(loc) << "cannot read what the linker wrote: "
                          << executable.getError().message();
  std::string mistake =
      tryWriteFile(output.str(), (*executable)->getBuffer(), 0777);
  return mistake.empty() ? success() : emitError(loc) << mistake;
}

} // namespace rota::lowering

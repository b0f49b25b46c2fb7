// SPDX-License-Identifier: Apache-2.0
//
// Runs the linker on files in memory and writes the executable whole.
#include "lowering/executable/Link.h"
#include "lowering/executable/RunTool.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace rota::lowering {
namespace {

/// A file that is removed unless it is kept, also when a signal ends the
/// process (SIGKILL aside).
class TemporaryFile {
public:
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile &) = delete;
  ~TemporaryFile() {
    if (!name.empty())
      fs::remove(name);
    release();
  }
  /// Makes a file beside `beside` or, when that is empty, in the system's
  /// folder for temporary files.
  std::error_code create(StringRef beside) {
    std::error_code error =
        beside.empty() ? fs::createTemporaryFile("rota", "", name)
                       : fs::createUniqueFile(beside + ".%%%%%%", name);
    if (!error)
      llvm::sys::RemoveFileOnSignal(name);
    return error;
  }
  std::error_code renameTo(StringRef target) {
    std::error_code error = fs::rename(name, target);
    if (!error)
      release();
    return error;
  }
  StringRef str() const { return name.str(); }

private:
  void release() {
    llvm::sys::DontRemoveFileOnSignal(name);
    name.clear();
  }

  SmallString<128> name;
};

LogicalResult cannotWrite(Location loc, StringRef output,
                          std::error_code error) {
  return emitError(loc) << "cannot write '" << output
                        << "': " << error.message();
}

FailureOr<std::string> findDriver(Location loc, const LinkOptions &options) {
  SmallVector<StringRef> names{"clang++-22", "clang++", "g++", "c++"};
  if (!options.linker.empty())
    names = {options.linker};
  for (StringRef name : names)
    if (auto found = llvm::sys::findProgramByName(name))
      return *found;
  auto error = emitError(loc) << "expected a compiler driver to link with, ";
  if (!options.linker.empty())
    return error << "'" << options.linker << "' is not there";
  return error << "none of clang++-22, clang++, g++ and c++ is there (install "
                  "clang-22, or name one with --linker)";
}

FailureOr<std::string> findRuntime(Location loc) {
  static int anchor;
  std::string program = fs::getMainExecutable(nullptr, &anchor);
  SmallString<256> library(path::parent_path(path::parent_path(program)));
  path::append(library, "lib", "librota_runtime.a");
  if (fs::exists(library))
    return library.str().str();
  return emitError(loc) << "expected the runtime library at '" << library
                        << "', it is not there";
}

LogicalResult runDriver(Location loc, ArrayRef<std::string> arguments,
                        const MemoryFile &output) {
  std::error_code error;
  MemoryFile messages("rota-linker-messages", error);
  if (error)
    return cannotWrite(loc, "a file in memory", error);
  int status = waitForTool(
      startTool(arguments, output.descriptor(), messages.descriptor()));
  if (status == 0)
    return success();
  return emitError(loc) << "linking with '" << arguments.front()
                        << "' failed: " << firstError(messages);
}

/// Writes to what `output` is already: a device, a pipe, a file in memory.
std::error_code writeInPlace(StringRef bytes, StringRef output) {
  std::error_code error;
  llvm::raw_fd_ostream stream(output, error);
  if (error)
    return error;
  stream << bytes;
  stream.close();
  error = stream.error();
  stream.clear_error();
  return error;
}

/// Writes a file that appears whole or not at all. Only a regular file that a
/// folder lists can.
std::error_code writeWhole(StringRef bytes, StringRef output,
                           fs::perms permissions) {
  fs::file_status status;
  if (!fs::status(output, status) &&
      (!fs::is_regular_file(status) || status.getLinkCount() == 0))
    return writeInPlace(bytes, output);
  TemporaryFile file;
  if (auto error = file.create(output))
    return error;
  if (auto error = writeInPlace(bytes, file.str()))
    return error;
  if (permissions != fs::perms::no_perms)
    if (auto error = fs::setPermissions(file.str(), permissions))
      return error;
  return file.renameTo(output);
}

} // namespace

LogicalResult linkTrainer(Location loc, StringRef object, StringRef output,
                          const LinkOptions &options) {
  fs::file_status status;
  if (!fs::status(output, status) && !fs::is_regular_file(status))
    return emitError(loc) << "expected a regular file to write the trainer to, "
                             "got '"
                          << output << "'";
  auto driver = findDriver(loc, options);
  if (failed(driver))
    return failure();
  auto runtime = findRuntime(loc);
  if (failed(runtime))
    return failure();
  std::error_code error;
  MemoryFile objectFile("rota-object", error);
  if (!error)
    error = objectFile.write(object);
  if (error)
    return cannotWrite(loc, "a file in memory", error);
  MemoryFile result("rota-trainer", error);
  if (error)
    return cannotWrite(loc, "a file in memory", error);
  // A trainer that computes no products on the host needs no oneDNN to start.
  std::vector<std::string> arguments{
      *driver,  objectFile.path(), *runtime, "-Wl,--as-needed",
      "-ldnnl", "-lpthread",       "-ldl",   "-lm",
      "-o"};
  TemporaryFile named; // for linkers that need a file to rename
  // lld is six times as fast as the default linker, always there with this
  // driver, and writes to standard output when asked to.
  if (path::filename(*driver).starts_with("clang++-22")) {
    arguments.insert(arguments.end(), {"-", "-fuse-ld=lld"});
  } else {
    if ((error = named.create("")))
      return cannotWrite(loc, named.str(), error);
    arguments.push_back(named.str().str());
  }
  if (failed(runDriver(loc, arguments, result)))
    return failure();
  auto executable = named.str().empty()
                        ? result.read()
                        : llvm::MemoryBuffer::getFile(named.str());
  if (!executable)
    return emitError(loc) << "cannot read what the linker wrote: "
                          << executable.getError().message();
  error = writeWhole((*executable)->getBuffer(), output,
                     fs::perms::all_read | fs::perms::owner_write |
                         fs::perms::all_exe);
  return error ? cannotWrite(loc, output, error) : success();
}

LogicalResult writeText(Location loc, StringRef text, StringRef output) {
  if (output == "-") {
    llvm::outs() << text;
    llvm::outs().flush();
    if (!llvm::outs().has_error())
      return success();
    std::error_code error = llvm::outs().error();
    llvm::outs().clear_error();
    return cannotWrite(loc, "standard output", error);
  }
  std::error_code error = writeWhole(text, output, fs::perms::no_perms);
  return error ? cannotWrite(loc, output, error) : success();
}

} // namespace rota::lowering

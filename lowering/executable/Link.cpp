// SPDX-License-Identifier: Apache-2.0
//
// Runs the linker on temporary files and renames what it made.
#include "lowering/executable/Link.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace rota::lowering {
namespace {

/// A file that is removed unless it is kept.
class TemporaryFile {
public:
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile &) = delete;
  ~TemporaryFile() {
    if (!name.empty())
      fs::remove(name);
  }
  /// Makes a file beside `beside` or, when that is empty, in the system's
  /// place.
  std::error_code create(StringRef beside, StringRef suffix, int &descriptor) {
    if (beside.empty())
      return fs::createTemporaryFile("rota", suffix, descriptor, name);
    return fs::createUniqueFile(beside + ".%%%%%%", descriptor, name);
  }
  std::error_code create(StringRef beside, StringRef suffix, StringRef text) {
    int descriptor;
    if (std::error_code error = create(beside, suffix, descriptor))
      return error;
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << text;
    stream.close();
    std::error_code error = stream.error();
    stream.clear_error();
    return error;
  }
  std::error_code renameTo(StringRef target) {
    std::error_code error = fs::rename(name, target);
    if (!error)
      name.clear();
    return error;
  }
  StringRef str() const { return name.str(); }

private:
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

/// What the linker complained of: the first line that speaks of an error.
std::string complaint(StringRef file) {
  auto buffer = llvm::MemoryBuffer::getFile(file);
  if (!buffer)
    return "no message";
  StringRef text = (*buffer)->getBuffer();
  SmallVector<StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    if (line.contains("error") || line.contains("cannot find"))
      return line.str();
  return lines.empty() ? "no message" : lines.front().str();
}

LogicalResult runDriver(Location loc, StringRef driver,
                        ArrayRef<StringRef> arguments) {
  TemporaryFile messages;
  if (auto error = messages.create("", "txt", ""))
    return cannotWrite(loc, "a temporary file", error);
  std::string error;
  int code = llvm::sys::ExecuteAndWait(
      driver, arguments, /*Env=*/std::nullopt,
      {std::nullopt, messages.str(), messages.str()}, 0, 0, &error);
  if (code == 0)
    return success();
  return emitError(loc) << "linking with '" << driver << "' failed: "
                        << (error.empty() ? complaint(messages.str()) : error);
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
  TemporaryFile objectFile, result;
  int descriptor;
  if (auto error = result.create(output, "", descriptor))
    return cannotWrite(loc, output, error);
  fs::file_t handle = fs::convertFDToNativeFile(descriptor);
  fs::closeFile(handle);
  if (auto error = objectFile.create("", "o", object))
    return cannotWrite(loc, objectFile.str(), error);
  SmallVector<StringRef> arguments{*driver,          "-o",     result.str(),
                                   objectFile.str(), *runtime, "-ldnnl",
                                   "-lpthread",      "-ldl",   "-lm"};
  // Six times as fast as the default linker, and always there with this driver.
  if (path::filename(*driver).starts_with("clang++-22"))
    arguments.push_back("-fuse-ld=lld");
  if (failed(runDriver(loc, *driver, arguments)))
    return failure();
  if (auto error = fs::setPermissions(result.str(), fs::perms::all_read |
                                                        fs::perms::owner_write |
                                                        fs::perms::all_exe))
    return cannotWrite(loc, output, error);
  if (auto error = result.renameTo(output))
    return cannotWrite(loc, output, error);
  return success();
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
  // Only a regular file can appear whole; "/dev/stderr" is written as it is.
  fs::file_status status;
  if (!fs::status(output, status) && !fs::is_regular_file(status)) {
    std::error_code error;
    llvm::raw_fd_ostream stream(output, error);
    if (!error) {
      stream << text;
      stream.close();
      error = stream.error();
      stream.clear_error();
    }
    return error ? cannotWrite(loc, output, error) : success();
  }
  TemporaryFile file;
  if (auto error = file.create(output, "", text))
    return cannotWrite(loc, output, error);
  if (auto error = file.renameTo(output))
    return cannotWrite(loc, output, error);
  return success();
}

} // namespace rota::lowering

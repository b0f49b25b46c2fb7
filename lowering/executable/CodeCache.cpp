// SPDX-License-Identifier: Apache-2.0
#include "lowering/executable/CodeCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Target/TargetMachine.h"

#include <cstdlib>

using namespace mlir;
namespace fs = llvm::sys::fs;

namespace rota::lowering {

/// The compiler itself, as compiler caches tell one from another.
static std::string describeProgram() {
  static int anchor;
  fs::file_status status;
  if (fs::status(fs::getMainExecutable(nullptr, &anchor), status))
    return "";
  return llvm::utostr(status.getSize()) + " " +
         llvm::utostr(
             status.getLastModificationTime().time_since_epoch().count()) +
         " " + LLVM_VERSION_STRING;
}

CodeCache::CodeCache(ArrayRef<ModuleOp> modules,
                     const llvm::TargetMachine &machine,
                     const std::optional<std::string> &options) {
  const char *folder = std::getenv("ROTA_CODE_CACHE");
  if (!folder || !*folder || !options)
    return;
  std::string program = describeProgram();
  if (program.empty())
    return;
  llvm::SHA256 hash;
  auto add = [&](StringRef part) {
    hash.update(part);
    hash.update(StringRef("\0", 1));
  };
  add(program);
  add(machine.getTargetTriple().str());
  add(machine.getTargetCPU());
  add(machine.getTargetFeatureString());
  add(*options);
  for (ModuleOp module : modules) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    // The form that is printed fastest.
    module->print(stream,
                  OpPrintingFlags().printGenericOpForm().useLocalScope());
    add(text);
  }
  llvm::SmallString<128> file(folder);
  llvm::sys::path::append(file, llvm::toHex(hash.final(), /*LowerCase=*/true));
  path = (file + ".o").str();
}

std::unique_ptr<llvm::MemoryBuffer> CodeCache::find() const {
  if (path.empty())
    return nullptr;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  return buffer ? std::move(*buffer) : nullptr;
}

void CodeCache::keep(StringRef object) const {
  if (path.empty() ||
      fs::create_directories(llvm::sys::path::parent_path(path)))
    return;
  int file;
  llvm::SmallString<128> part;
  if (fs::createUniqueFile(path + ".%%%%%%", file, part))
    return;
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/true);
  stream << object;
  stream.close();
  bool isWritten = !stream.has_error();
  stream.clear_error();
  if (!isWritten || fs::rename(part, path))
    fs::remove(part);
}

} // namespace rota::lowering

// SPDX-License-Identifier: Apache-2.0
#include "lowering/executable/CodeCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Target/TargetMachine.h"

#include <cstdlib>

using namespace mlir;
namespace fs = llvm::sys::fs;

namespace rota::lowering {

/// Bytes that make two equal hashes of different texts impossible in practice.
static constexpr size_t kHashBytes = 16;
using Hash = llvm::BLAKE3;

static std::string digits(Hash &hash) {
  return llvm::toHex(hash.final<kHashBytes>(), /*LowerCase=*/true);
}

std::string digestOf(ArrayRef<Operation *> ops) {
  Hash hash;
  for (Operation *op : ops) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    // The form that is printed fastest.
    op->print(stream, OpPrintingFlags().printGenericOpForm().useLocalScope());
    hash.update(text);
  }
  return digits(hash);
}

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

CodeCache::CodeCache(const std::optional<std::string> &source,
                     const llvm::TargetMachine &machine) {
  const char *folder = std::getenv("ROTA_CODE_CACHE");
  if (!folder || !*folder || !source)
    return;
  static const std::string program = describeProgram();
  if (program.empty())
    return;
  Hash hash;
  for (StringRef part :
       {StringRef(program), StringRef(machine.getTargetTriple().str()),
        machine.getTargetCPU(), machine.getTargetFeatureString(),
        StringRef(*source)}) {
    hash.update(part);
    hash.update(StringRef("\0", 1));
  }
  llvm::SmallString<128> file(folder);
  llvm::sys::path::append(file, digits(hash) + ".o");
  path = file.str().str();
}

std::optional<std::string> CodeCache::find() const {
  if (path.empty())
    return std::nullopt;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  return buffer ? std::optional((*buffer)->getBuffer().str()) : std::nullopt;
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

FailureOr<std::string>
CodeCache::findOrMake(llvm::function_ref<FailureOr<std::string>()> make) const {
  if (std::optional<std::string> found = find())
    return *found;
  auto object = make();
  if (succeeded(object))
    keep(*object);
  return object;
}

} // namespace rota::lowering

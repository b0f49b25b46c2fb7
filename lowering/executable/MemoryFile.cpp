// SPDX-License-Identifier: Apache-2.0
#include "lowering/executable/MemoryFile.h"

#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

namespace rota::lowering {

/// MFD_EXEC, which headers older than Linux 6.3 lack and its kernels refuse.
static constexpr unsigned kExecutable = 0x0010;

MemoryFile::MemoryFile(const char *name, std::error_code &error)
    : file(memfd_create(name, kExecutable)) {
  if (file < 0 && errno == EINVAL)
    file = memfd_create(name, 0);
  error = file < 0 ? std::error_code(errno, std::generic_category())
                   : std::error_code();
}

MemoryFile::~MemoryFile() {
  if (file >= 0)
    close(file);
}

std::string MemoryFile::path() const {
  return "/proc/self/fd/" + std::to_string(file);
}

std::error_code MemoryFile::write(llvm::StringRef bytes) {
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/false);
  stream << bytes;
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  return error;
}

llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> MemoryFile::read() const {
  return llvm::MemoryBuffer::getFile(path(), /*IsText=*/false,
                                     /*RequiresNullTerminator=*/false);
}

} // namespace rota::lowering

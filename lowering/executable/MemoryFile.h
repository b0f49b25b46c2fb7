// SPDX-License-Identifier: Apache-2.0
//
// Files in memory, for data that must not outlive the process.
#ifndef ROTA_LOWERING_EXECUTABLE_MEMORYFILE_H
#define ROTA_LOWERING_EXECUTABLE_MEMORYFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include <string>

namespace rota::lowering {

/// A file that no folder lists. The kernel frees it with its last descriptor,
/// so a process that is killed leaves no file.
class MemoryFile {
public:
  /// `name` is what tools for processes show. Check `error` afterwards.
  MemoryFile(const char *name, std::error_code &error);
  ~MemoryFile();
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;

  /// The descriptor, which a program that is started inherits.
  int descriptor() const { return file; }
  /// A path that opens the file in this process and in those that it starts.
  std::string path() const;

  std::error_code write(llvm::StringRef bytes);
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> read() const;

private:
  int file;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_MEMORYFILE_H

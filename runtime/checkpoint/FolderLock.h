// SPDX-License-Identifier: Apache-2.0
//
// A folder that one run at a time writes to.
#ifndef ROTA_RUNTIME_CHECKPOINT_FOLDERLOCK_H
#define ROTA_RUNTIME_CHECKPOINT_FOLDERLOCK_H

#include <chrono>
#include <string>

namespace rota {

/// Holds the folder's lock file as long as it lives; the system gives it back
/// when the process ends in any way. The file holds the number of the process.
class FolderLock {
public:
  /// The processes of a job end seconds after their launcher was killed.
  static constexpr std::chrono::seconds kPatience{10};

  /// Makes the folder where there is none. Waits for a process that has the
  /// lock, with a note on stderr, and throws InputError that names it when it
  /// still has the lock after `patience`; RunError when the folder or the file
  /// cannot be made. On a file system without locks there is a note alone.
  explicit FolderLock(const std::string &folder,
                      std::chrono::milliseconds patience = kPatience);
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

private:
  /// False when another process still has the lock.
  bool waitFor(std::chrono::milliseconds patience, const std::string &folder,
               const std::string &path);

  int file = -1;
};

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_FOLDERLOCK_H

// SPDX-License-Identifier: Apache-2.0
//
// A folder that one run at a time writes to.
#ifndef ROTA_RUNTIME_CHECKPOINT_FOLDERLOCK_H
#define ROTA_RUNTIME_CHECKPOINT_FOLDERLOCK_H

#include <string>

namespace rota {

/// Holds the folder's lock file as long as it lives; the system gives it back
/// when the process ends in any way. The file holds the number of the process.
class FolderLock {
public:
  /// Makes the folder where there is none. Throws InputError that names the
  /// holder's process when another one has the lock, RunError when the folder
  /// or the file cannot be made.
  explicit FolderLock(const std::string &folder);
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

private:
  int file = -1;
};

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_FOLDERLOCK_H

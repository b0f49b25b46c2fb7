// SPDX-License-Identifier: Apache-2.0
//
// The host memory that a process may take.
#ifndef ROTA_RUNTIME_DEVICE_AVAILABLEMEMORY_H
#define ROTA_RUNTIME_DEVICE_AVAILABLEMEMORY_H

#include <cstdint>
#include <string>

namespace rota {

/// Bytes of memory that control groups of version 1 or 2 allow this process;
/// INT64_MAX: they have no limit. `root`: see smallestGroupLimit.
int64_t controlGroupMemory(const std::string &root = "/");

/// Bytes of the machine's memory that this process may have.
int64_t availableMemory();

/// Bytes of swap space, which a process may have beside it.
int64_t swapSpace();

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_AVAILABLEMEMORY_H

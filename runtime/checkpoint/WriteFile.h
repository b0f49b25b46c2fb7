// SPDX-License-Identifier: Apache-2.0
//
// Files that are written whole or not at all.
#ifndef ROTA_RUNTIME_CHECKPOINT_WRITEFILE_H
#define ROTA_RUNTIME_CHECKPOINT_WRITEFILE_H

#include <string>
#include <string_view>
#include <vector>

namespace rota {

/// Writes the parts to a file beside `path` and renames it, so that `path` is
/// either the old file or the whole new one. Throws RunError (a full disk, say)
/// after removing what it wrote.
void writeFile(const std::string &path,
               const std::vector<std::string_view> &parts);

/// Throws InputError when a file cannot be made at `path`, before hours of work
/// depend on it.
void checkWritable(const std::string &path);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_WRITEFILE_H

// SPDX-License-Identifier: Apache-2.0
//
// The items of --data: files, folders and `synthetic`, with or without weights.
//
// A folder stands for the files in it, sorted by the bytes of their names,
// without hidden ones and those that belong to others (.mask, .idx). A folder
// in it is an error. `synthetic` stands for SyntheticSource.h; ./synthetic is a
// file.
//
// Without weights all files are one source, one after the other. With a weight
// after every item, PATH:WEIGHT, each item is a source of its own; weights are
// rounded to millionths and need not add up to 1. An item that is the path of
// something is never cut at its ':'.
#ifndef ROTA_RUNTIME_DATA_DATAPATHS_H
#define ROTA_RUNTIME_DATA_DATAPATHS_H

#include <cstdint>
#include <string>
#include <vector>

namespace rota {

/// An item as it stands.
struct DataItem {
  std::string path;
  std::string weight;             // after the ':'; empty: none
  std::vector<std::string> files; // none: synthetic tokens
};

/// The items with their files. Throws InputError when a folder cannot be read
/// or has no file, or a weight is wrong.
std::vector<DataItem> findItems(const std::vector<std::string> &items);

struct SourcePaths {
  std::string name;               // the item, or the first of several
  int64_t share;                  // in lowest terms
  std::vector<std::string> files; // none: synthetic tokens
};

/// The sources of the given items. Throws InputError when a path cannot be
/// read, a folder has no file, a file is named twice (links included) or a
/// weight is wrong or missing.
std::vector<SourcePaths> findSources(const std::vector<std::string> &items);

} // namespace rota

#endif // ROTA_RUNTIME_DATA_DATAPATHS_H

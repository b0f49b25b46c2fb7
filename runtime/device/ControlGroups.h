// SPDX-License-Identifier: Apache-2.0
//
// Limits of control groups (`docker run`, Kubernetes, Slurm), of version 1
// and 2.
#ifndef ROTA_RUNTIME_DEVICE_CONTROLGROUPS_H
#define ROTA_RUNTIME_DEVICE_CONTROLGROUPS_H

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace rota {

/// The smallest limit of the groups that this process is in, those above them
/// included; INT64_MAX: there is none. `controllers`: of version 1, whose
/// groups have the limit. `limitOf`: the limit of the group whose files are in
/// a folder, or INT64_MAX. `root`: the folder that has proc/ and the folders of
/// the mounts, "/" but in tests.
int64_t smallestGroupLimit(
    const std::string &root, const std::vector<std::string> &controllers,
    const std::function<int64_t(const std::filesystem::path &)> &limitOf);

/// The first line of a file; empty where there is no file.
std::string firstLineOf(const std::filesystem::path &path);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CONTROLGROUPS_H

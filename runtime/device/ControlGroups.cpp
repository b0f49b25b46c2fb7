// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/ControlGroups.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace rota {

std::string firstLineOf(const std::filesystem::path &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Whether a list such as "rw,cpu,cpuacct" has the word.
static bool lists(const std::string &list, const std::string &word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

namespace {
/// The mount of a hierarchy of groups: where it is, and which group is there.
struct GroupMount {
  std::string point, group;
};

using LimitOf = std::function<int64_t(const std::filesystem::path &)>;
} // namespace

/// The mount of the hierarchy with this controller; of version 2: "".
static GroupMount findMount(const std::filesystem::path &root,
                            const std::string &controller) {
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    size_t separator = line.find(" - ");
    if (separator == std::string::npos)
      continue;
    std::string skipped, type, options;
    GroupMount mount;
    std::istringstream before(line);
    before >> skipped >> skipped >> skipped >> mount.group >> mount.point;
    std::istringstream after(line.substr(separator + 3));
    after >> type >> skipped >> options;
    if (controller.empty() ? type == "cgroup2"
                           : type == "cgroup" && lists(options, controller))
      return mount;
  }
  return {};
}

/// The smallest limit of the group at `path` and the groups that it is in.
static int64_t limitOfPath(const std::filesystem::path &root,
                           const GroupMount &mount, std::string path,
                           const LimitOf &limitOf) {
  if (mount.point.empty())
    return INT64_MAX;
  // A container often sees its own group alone, as the top of the mount.
  std::string top = mount.group == "/" ? "" : mount.group;
  bool isBelow =
      path.rfind(top + "/", 0) == 0 && path.find("..") == std::string::npos;
  path = isBelow ? path.substr(top.size()) : "";
  std::string folder = root.string() + mount.point;
  int64_t limit = INT64_MAX;
  while (true) {
    limit = std::min(limit, limitOf(folder + path));
    if (path.empty())
      return limit;
    path.resize(path.rfind('/'));
  }
}

int64_t smallestGroupLimit(const std::string &root,
                           const std::vector<std::string> &controllers,
                           const LimitOf &limitOf) {
  std::ifstream groups(std::filesystem::path(root) / "proc/self/cgroup");
  int64_t limit = INT64_MAX;
  auto consider = [&](const std::string &controller, const std::string &path) {
    limit = std::min(
        limit, limitOfPath(root, findMount(root, controller), path, limitOf));
  };
  // A line of version 1 is "4:cpu,cpuacct:/group", of version 2 "0::/group".
  for (std::string line; std::getline(groups, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string own = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (own.empty())
      consider("", path);
    for (const std::string &controller : controllers)
      if (lists(own, controller))
        consider(controller, path);
  }
  return limit;
}

} // namespace rota

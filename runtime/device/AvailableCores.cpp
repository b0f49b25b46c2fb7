// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/AvailableCores.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace rota {

cpu_set_t allowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    CPU_ZERO(&set);
  return set;
}

std::vector<int> parseCoreList(const std::string &text) {
  std::vector<int> cores;
  std::istringstream list(text);
  for (std::string range; std::getline(list, range, ',');) {
    std::istringstream numbers(range);
    int first = 0, last = 0;
    char dash = 0;
    if (!(numbers >> first))
      return {};
    if (!(numbers >> dash >> last) || dash != '-')
      last = first;
    for (int core = std::max(first, 0); core <= last && core < CPU_SETSIZE;
         ++core)
      cores.push_back(core);
  }
  return cores;
}

static std::string firstLine(const std::filesystem::path &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The cores that a quota of processor time is worth; INT_MAX where the group
/// has none, which the kernel writes as "max" or -1.
static int wholeCores(const std::string &quota, const std::string &period) {
  double time = std::atof(quota.c_str()), of = std::atof(period.c_str());
  if (time <= 0 || of <= 0)
    return INT_MAX;
  return static_cast<int>(std::clamp((time + of - 1) / of, 1.0, 1e9));
}

/// The limits of one group, in the files of either version.
static int coresOfGroup(const std::filesystem::path &folder) {
  std::istringstream both(firstLine(folder / "cpu.max"));
  std::string quota, period;
  both >> quota >> period;
  int cores = std::min(wholeCores(quota, period),
                       wholeCores(firstLine(folder / "cpu.cfs_quota_us"),
                                  firstLine(folder / "cpu.cfs_period_us")));
  for (const char *name :
       {"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"})
    if (size_t count = parseCoreList(firstLine(folder / name)).size())
      cores = std::min(cores, static_cast<int>(count));
  return cores;
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
static int coresOfPath(const std::filesystem::path &root,
                       const GroupMount &mount, std::string path) {
  if (mount.point.empty())
    return INT_MAX;
  // A container often sees its own group alone, as the top of the mount.
  std::string top = mount.group == "/" ? "" : mount.group;
  bool isBelow =
      path.rfind(top + "/", 0) == 0 && path.find("..") == std::string::npos;
  path = isBelow ? path.substr(top.size()) : "";
  std::string folder = root.string() + mount.point;
  int cores = INT_MAX;
  while (true) {
    cores = std::min(cores, coresOfGroup(folder + path));
    if (path.empty())
      return cores;
    path.resize(path.rfind('/'));
  }
}

int controlGroupCores(const std::string &root) {
  std::ifstream groups(std::filesystem::path(root) / "proc/self/cgroup");
  int cores = INT_MAX;
  // A line of version 1 is "4:cpu,cpuacct:/group", of version 2 "0::/group".
  for (std::string line; std::getline(groups, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    for (const char *controller : {"", "cpu", "cpuset"})
      if (*controller ? lists(controllers, controller) : controllers.empty())
        cores = std::min(cores, coresOfPath(root, findMount(root, controller),
                                            line.substr(second + 1)));
  }
  return cores;
}

int availableCores() {
  cpu_set_t set = allowedCores();
  return std::max(1, std::min(CPU_COUNT(&set), controlGroupCores()));
}

int machineCores() {
  int online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1, std::min(online, controlGroupCores()));
}

std::vector<int> coresToBind(int count, int ranks) {
  cpu_set_t set = allowedCores();
  std::vector<int> cores;
  // One rank a core keeps its place by itself, and other processes have ranks
  // on the same cores then: where they are is not known here.
  if (ranks > count && count == CPU_COUNT(&set))
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set))
        cores.push_back(core);
  return cores;
}

} // namespace rota

// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/AvailableCores.h"
#include "runtime/device/ControlGroups.h"

#include <algorithm>
#include <climits>
#include <filesystem>
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

/// The cores that a quota of processor time is worth; INT_MAX where the group
/// has none, which the kernel writes as "max" or -1.
static int wholeCores(const std::string &quota, const std::string &period) {
  double time = std::atof(quota.c_str()), of = std::atof(period.c_str());
  if (time <= 0 || of <= 0)
    return INT_MAX;
  return static_cast<int>(std::clamp((time + of - 1) / of, 1.0, 1e9));
}

/// The limits of one group, in the files of either version.
static int64_t coresOfGroup(const std::filesystem::path &folder) {
  std::istringstream both(firstLineOf(folder / "cpu.max"));
  std::string quota, period;
  both >> quota >> period;
  int64_t cores =
      std::min(wholeCores(quota, period),
               wholeCores(firstLineOf(folder / "cpu.cfs_quota_us"),
                          firstLineOf(folder / "cpu.cfs_period_us")));
  for (const char *name :
       {"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"})
    if (auto cpus = std::ssize(parseCoreList(firstLineOf(folder / name))))
      cores = std::min<int64_t>(cores, cpus);
  return cores;
}

int controlGroupCores(const std::string &root) {
  return static_cast<int>(std::min<int64_t>(
      INT_MAX, smallestGroupLimit(root, {"cpu", "cpuset"}, coresOfGroup)));
}

int availableCores() {
  cpu_set_t set = allowedCores();
  int allowed = CPU_COUNT(&set);
  if (allowed == 0) // the system does not say it
    return machineCores();
  return std::max(1, std::min(allowed, controlGroupCores()));
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

// SPDX-License-Identifier: Apache-2.0
//
// The cores that a process may compute with: those of its affinity, which
// cpusets limit, and at most the processor time that its control groups allow
// (`docker run --cpus`, limits of Kubernetes).
#ifndef ROTA_RUNTIME_DEVICE_AVAILABLECORES_H
#define ROTA_RUNTIME_DEVICE_AVAILABLECORES_H

#include <sched.h>
#include <string>
#include <vector>

namespace rota {

/// The number of cores that this process may compute with.
int availableCores();
/// The number of cores that the machine has for all processes of the control
/// groups of this one.
int machineCores();
/// The cores to bind `count` tokens to that `ranks` threads share; none where
/// the operating system has better places for them.
std::vector<int> coresToBind(int count, int ranks);

/// The cores on which the calling thread may run; none on a machine with more
/// than CPU_SETSIZE of them.
cpu_set_t allowedCores();
/// The numbers of a list such as "0-3,8", as the kernel writes it. Empty for
/// any other text.
std::vector<int> parseCoreList(const std::string &text);
/// The cores that control groups of version 1 or 2 allow this process: the
/// smallest quota, rounded up to whole cores, and the smallest cpuset of its
/// groups. INT_MAX: no limit. `root`: see smallestGroupLimit.
int controlGroupCores(const std::string &root = "/");

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_AVAILABLECORES_H

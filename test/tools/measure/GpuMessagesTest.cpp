// SPDX-License-Identifier: Apache-2.0
//
// The network of a machine with GPUs.
#include "tools/measure/GpuMessages.h"

#include <gtest/gtest.h>

using namespace rota;
using mlir::rota::Machine;

namespace {

/// "8 links [a sheet], 0 wires [a table]": devices, names and sources.
std::string networkOf(const Machine &machine) {
  std::string text;
  for (size_t i = 0; i < machine.network.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(machine.network[i].devices) +
            " " + machine.network[i].name + " [" +
            machine.sourceOf("network[" + std::to_string(i) +
                             "].bytes_per_second") +
            "]";
  return text;
}

TEST(GpuNetwork, TakesOuterLevelsOfADescribedMachine) {
  Machine described;
  described.name = "node";
  described.network = {{"links", 8, 1e11, 1e-6, 1, 0.1},
                       {"wires", 0, 1e10, 1e-5, 1, 0}};
  described.sources = {{"network[0]", "a sheet"}, {"network[1]", "a table"}};
  auto result = [](int64_t gpus, const Machine *described) {
    Machine machine;
    mlir::rota::NetworkLevel level = {"GPUs", gpus, 2e11, 1e-6, 1, 0};
    setGpuNetwork(machine, gpus > 1 ? &level : nullptr, described, "measured");
    return networkOf(machine);
  };
  const std::string measured =
      " GPUs [measured: all-gather, reduce-scatter and messages]";
  EXPECT_EQ(result(8, &described),
            "8" + measured + ", 0 wires [node: a table]");
  EXPECT_EQ(result(4, &described),
            "4" + measured +
                ", 8 links [node: a sheet], 0 wires [node: a "
                "table]");
  EXPECT_EQ(result(3, &described),
            "3" + measured + ", 0 wires [node: a table]");
  EXPECT_EQ(result(4, nullptr), "0" + measured);
  EXPECT_EQ(result(1, &described),
            "8 links [node: a sheet], 0 wires [node: a table]");
  EXPECT_EQ(result(1, nullptr).substr(0, 18), "0 network [assumed");
}

} // namespace

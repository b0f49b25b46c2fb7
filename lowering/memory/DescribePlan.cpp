// SPDX-License-Identifier: Apache-2.0
//
// The memory plan as a table for people.
#include "lowering/memory/MemoryPlan.h"
#include "runtime/program/DeviceTraits.h"
#include "runtime/program/RuntimeMemory.h"

#include <algorithm>

namespace rota::memory {
namespace {

constexpr size_t kNameWidth = 19, kWidth = 12;

std::string cell(std::string text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string padded(std::string name) {
  name.resize(std::max(kNameWidth, name.size()), ' ');
  return name;
}

std::string mebibytes(int64_t bytes) {
  int64_t tenths = (bytes * 10 + (1 << 19)) >> 20;
  return cell(std::to_string(tenths / 10) + "." + std::to_string(tenths % 10),
              kWidth);
}

int64_t bytesOf(const std::vector<Region> &regions, const std::string &use) {
  int64_t bytes = 0;
  for (const Region &region : regions)
    if (region.use == use)
      bytes += region.bytes;
  return bytes;
}

template <typename Bytes>
std::string line(const Program &program, const std::string &name, Bytes bytes) {
  std::string text = padded(name);
  for (const Stage &stage : program.stages)
    text += mebibytes(bytes(stage));
  return text + "\n";
}

/// Memory that the runtime takes on a GPU beside the arena.
std::string describeRuntimeMemory(const Program &program) {
  RuntimeMemory memory = runtimeMemory(program);
  auto row = [&](const std::string &name, int64_t bytes) {
    return line(program, name, [&](const Stage &) { return bytes; });
  };
  std::string text = row("runtime", memory.bytes);
  if (int64_t bytes = memory.exchangeBytes + memory.hostBytes; bytes > 0)
    text += row("with --ranks nccl", bytes);
  return text + row("staging (host)", kStagingBytes);
}

} // namespace

std::string describePlan(const Program &program) {
  std::string text;
  if (program.accumulationSteps > 1)
    text = "a step runs the timeline " +
           std::to_string(program.accumulationSteps) +
           " times before its update\n";
  text += "memory of a rank, in MiB\n" + padded("stage");
  for (size_t s = 0; s < program.stages.size(); ++s)
    text += cell(std::to_string(s), kWidth);
  text += "\n";
  for (const Region &region : program.stages.front().regions)
    text += line(program, region.use, [&](const Stage &stage) {
      return bytesOf(stage.regions, region.use);
    });
  text += line(program, "peak",
               [](const Stage &stage) { return stage.arenaBytes; });
  bool hasHost =
      std::any_of(program.stages.begin(), program.stages.end(),
                  [](const Stage &stage) { return stage.hostBytes > 0; });
  if (hasHost)
    text += line(program, "offloaded (host)",
                 [](const Stage &stage) { return stage.hostBytes; });
  if (traitsOf(program.device).isGpu)
    text += describeRuntimeMemory(program);
  return text;
}

std::string describeExcess(const Program &program, int64_t memory) {
  std::string text =
      line(program, "memory", [&](const Stage &) { return memory; }) +
      padded("excess");
  for (size_t stage = 0; stage < program.stages.size(); ++stage) {
    int64_t excess = deviceBytes(program, stage) - memory;
    text += excess > 0 ? mebibytes(excess) : cell("-", kWidth);
  }
  return text + "\n";
}

} // namespace rota::memory

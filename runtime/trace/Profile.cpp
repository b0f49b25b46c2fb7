// SPDX-License-Identifier: Apache-2.0
//
// The tables behind `--profile`.
#include "runtime/trace/Profile.h"

#include <fmt/format.h>

namespace rota {

static void add(Profile::Entry &entry, double seconds, double flops = 0.0) {
  ++entry.calls;
  entry.seconds += seconds;
  entry.flops += flops;
}

void Profile::addTask(int task, double seconds) {
  add(taskTable[task], seconds);
}

void Profile::addKernel(RotaKernel kernel, double seconds) {
  add(kernelTable[kernel], seconds);
}

void Profile::addGemm(const RotaGemm &gemm, double seconds) {
  std::string name = fmt::format(
      "gemm {}x{}x{}x{} {}{}{}{}", gemm.batch, gemm.m, gemm.n, gemm.k,
      gemm.transposeA ? "T" : "N", gemm.transposeB ? "T" : "N",
      gemm.typeA == ROTA_BF16 ? " bf16" : " f32",
      gemm.accumulate ? " accumulate" : "");
  add(gemmTable[name], seconds,
      2.0 * static_cast<double>(gemm.batch) * gemm.m * gemm.n * gemm.k);
}

Profile::Table Profile::tasks(const std::vector<std::string> &names) const {
  Table table;
  for (const auto &[task, entry] : taskTable)
    table[names[task]] = entry;
  return table;
}

Profile::Table Profile::kernels(const std::vector<std::string> &names,
                                const RotaKernel *functions) const {
  Table table;
  std::map<RotaKernel, std::string> known;
  for (size_t i = 0; i < names.size(); ++i)
    known[functions[i]] = names[i];
  for (const auto &[kernel, entry] : kernelTable) {
    auto found = known.find(kernel);
    table[found == known.end() ? "(not in the table)" : found->second] = entry;
  }
  return table;
}

} // namespace rota

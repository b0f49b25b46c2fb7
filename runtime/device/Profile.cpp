// SPDX-License-Identifier: Apache-2.0
//
// The tables of `--profile`.
#include "runtime/device/Profile.h"
#include "runtime/program/GemmName.h"
#include "runtime/program/Program.h"

namespace rota {

Profile::Entry &Profile::add(Entry &entry, Span span) {
  ++entry.calls;
  open.emplace_back(&entry, span);
  return entry;
}

void Profile::settle(Device &device) {
  for (const auto &[entry, span] : open)
    entry->seconds += device.secondsAt(span.end) - device.secondsAt(span.begin);
  open.clear();
}

void Profile::addTask(int task, Span span) { add(taskTable[task], span); }

void Profile::addKernel(RotaKernel kernel, int64_t rows, Span span) {
  add(kernelTable[kernel], span).rows += rows;
}

void Profile::addGemm(const RotaGemm &gemm, Span span) {
  add(gemmTable[gemmName(gemm)], span).flops += gemmOperations(gemm);
}

Profile::Table Profile::tasks(const Program &program) const {
  Table table;
  for (const auto &[task, entry] : taskTable)
    table[program.tasks[task]] = entry;
  return table;
}

Profile::Table Profile::kernels(const Program &program,
                                const RotaKernel *functions) const {
  std::map<RotaKernel, size_t> numbers;
  for (size_t i = 0; i < program.kernels.size(); ++i)
    numbers[functions[i]] = i;
  Table table;
  for (const auto &[kernel, entry] : kernelTable) {
    auto number = numbers.find(kernel);
    if (number == numbers.end()) {
      table["(not in the table)"] = entry;
      continue;
    }
    Entry &row = table[program.kernels[number->second]] = entry;
    if (!program.kernelRowBytes.empty())
      row.bytes = static_cast<double>(entry.rows) *
                  static_cast<double>(program.kernelRowBytes[number->second]);
  }
  return table;
}

} // namespace rota

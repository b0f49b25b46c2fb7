// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/Reports.h"

namespace rota::simt {

static const char *nameOf(Fault fault) {
  switch (fault) {
  case Fault::Race:
    return "race";
  case Fault::Unordered:
    return "unordered";
  case Fault::Unwritten:
    return "uninitialized";
  case Fault::OutOfBounds:
    return "out of bounds";
  case Fault::Misaligned:
    return "misaligned";
  case Fault::PendingCopy:
    return "asynchronous copy";
  case Fault::PendingProduct:
    return "product of a warpgroup";
  case Fault::DivergentBarrier:
    return "divergent barrier";
  case Fault::DivergentCollective:
    return "divergent collective";
  case Fault::Deadlock:
    return "deadlock";
  case Fault::InvalidOperand:
    return "invalid operand";
  }
  return "";
}

void Reports::startBlock(const RotaSimtKernel *kernel,
                         std::array<uint32_t, 3> block, size_t limit) {
  this->kernel = kernel;
  this->block = block;
  this->limit = limit;
  seen.clear();
  lines.clear();
}

bool Reports::isNew(Fault fault, uint32_t site, uint32_t other) {
  return lines.size() < limit && seen.insert({fault, site, other}).second;
}

const char *Reports::place(uint32_t site) const {
  if (site == 0 || site > kernel->siteCount)
    return "end of the kernel";
  return kernel->sites[site - 1];
}

void Reports::append(Fault fault, uint32_t thread, uint32_t site,
                     const std::string &text) {
  lines.push_back(fmt::format(
      "kernel '{}', block ({}, {}, {}), thread {}, {}: {}: {}", kernel->name,
      block[0], block[1], block[2], thread, place(site), nameOf(fault), text));
}

} // namespace rota::simt

// SPDX-License-Identifier: Apache-2.0
//
// One op to test, in this process.
#ifndef ROTA_TEST_LOWERING_KERNELS_COMPILEOP_H
#define ROTA_TEST_LOWERING_KERNELS_COMPILEOP_H

#include "tools/bench/CompiledOp.h"

namespace rota::testing {

/// CompiledOp::create without LLVM's optimization, which is most of the time of
/// a kernel that runs a few times. The tests against the interpreter have it.
inline std::unique_ptr<bench::CompiledOp>
compileOp(const std::string &source, std::vector<bool> accumulate = {},
          const std::string &cpu = "native",
          std::optional<lowering::PairProducts> pairs = {}) {
  return bench::CompiledOp::create(source, std::move(accumulate), cpu,
                                   llvm::CodeGenOptLevel::None, pairs);
}

} // namespace rota::testing

#endif // ROTA_TEST_LOWERING_KERNELS_COMPILEOP_H

// SPDX-License-Identifier: Apache-2.0
//
// A remark on each collective: its tensor, bytes, axes and reason.
#include "ir/rota/cost/Traffic.h"
#include "ir/rota/sharding/Sharding.h"
#include "passes/shard/Passes.h"

#include "mlir/IR/Remarks.h"

namespace mlir::rota {
#define GEN_PASS_DEF_EXPLAINCOMMUNICATION
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
struct ExplainCommunication
    : mlir::rota::impl::ExplainCommunicationBase<ExplainCommunication> {
  void runOnOperation() override {
    getOperation().walk([&](CollectiveOpInterface collective) {
      Traffic traffic = trafficOf(collective);
      ++collectives;
      bytes += traffic.bytes;
      std::string tensor;
      llvm::raw_string_ostream(tensor) << collective->getResult(0).getType();
      remark::analysis(
          collective.getLoc(),
          remark::RemarkOpts::name(collective->getName().stripDialect())
              .category("communication"))
          << remark::reason("{0}", collective.getReason())
          << remark::metric("Tensor", tensor)
          << remark::metric("Bytes", traffic.bytes)
          << remark::metric("Axes", axesText(traffic.axes))
          << remark::metric("Ranks", traffic.ranks);
    });
    markAllAnalysesPreserved();
  }
};
} // namespace

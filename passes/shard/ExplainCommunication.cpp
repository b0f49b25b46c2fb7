// SPDX-License-Identifier: Apache-2.0
//
// Says of each collective what it moves and why.
#include "ir/rota/Traffic.h"
#include "passes/shard/Passes.h"

namespace mlir::rota {
#define GEN_PASS_DEF_EXPLAINCOMMUNICATION
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
struct ExplainCommunication
    : rota::impl::ExplainCommunicationBase<ExplainCommunication> {
  void runOnOperation() override {
    getOperation().walk([&](CollectiveOpInterface collective) {
      Traffic traffic = trafficOf(collective);
      ++collectives;
      bytes += traffic.bytes;
      InFlightDiagnostic remark = collective.emitRemark()
                                  << "'" << collective->getName() << "' makes "
                                  << collective->getResult(0).getType()
                                  << ", sends " << traffic.bytes
                                  << " bytes over [";
      llvm::interleaveComma(traffic.axes, remark, [&](AxisRefAttr ref) {
        remark << stringifyMeshAxis(ref.getAxis());
        if (!ref.isWhole())
          remark << ":(" << ref.getBefore() << ")" << ref.getSize();
      });
      remark << "] (" << traffic.ranks << " ranks): " << collective.getReason();
    });
    markAllAnalysesPreserved();
  }
};
} // namespace

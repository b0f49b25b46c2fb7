// SPDX-License-Identifier: Apache-2.0
//
// Adds copies of residuals to the program's timeline. See Passes.td.
#include "ir/rota/model/Roles.h"
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/Program.h"
#include "passes/pipeline/timeline/Offloading.h"

#include "llvm/ADT/StringSet.h"

namespace mlir::pipe {

#define GEN_PASS_DEF_OFFLOADRESIDUALS
#include "passes/pipeline/Passes.h.inc"

namespace {

using namespace ::rota::pipe;

struct OffloadResidualsPass : impl::OffloadResidualsBase<OffloadResidualsPass> {
  using OffloadResidualsBase::OffloadResidualsBase;

  void runOnOperation() override {
    TimelineOp op = findTimeline(getOperation());
    if (!op || failed(verifyTimelineOp(op)))
      return signalPassFailure();
    Timeline timeline = op.read();
    if (fetchDistance < 0 || fetchDistance > kMaxActions) {
      op.emitError("expected 'fetch-distance' between 0 and ")
          << kMaxActions << ", got " << fetchDistance.getValue();
      return signalPassFailure();
    }
    std::vector<bool> chosen = offloadedChunks(findProgram(getOperation()));
    bool offloads = hasAny(timeline, ActionKind::Offload);
    if (offloads && !policy.empty() && !llvm::is_contained(chosen, true)) {
      op.emitError("expected a remat policy that offloads for the schedule '")
          << op.getSchedule() << "', which has OFFLOAD, got '" << policy << "'";
      return signalPassFailure();
    }
    if (!offloads && llvm::is_contained(chosen, true)) {
      timeline = offloadResiduals(timeline, chosen, fetchDistance);
      op.write(timeline);
    }
    for (const std::vector<Action> &row : timeline.ranks)
      copies += llvm::count_if(row, [](const Action &action) {
        return action.kind == ActionKind::Offload;
      });
  }

private:
  /// True when a backward of that kind takes something from host memory.
  static bool offloads(::mlir::rota::LayerOp kind) {
    auto isOffloaded = [](const auto &port) { return port.isOffloaded(); };
    return llvm::any_of(
        ::mlir::rota::functionsIn(kind), [&](func::FuncOp function) {
          ::mlir::rota::FunctionRoles roles(function);
          using ::mlir::rota::Role;
          return llvm::any_of(roles.arguments(Role::Residual), isOffloaded) ||
                 llvm::any_of(roles.arguments(Role::InputActivation),
                              isOffloaded);
        });
  }

  /// For each chunk, whether one of its layers offloads.
  static std::vector<bool> offloadedChunks(ProgramOp program) {
    llvm::StringSet<> kinds;
    for (auto kind : program.getStackOp().getOps<::mlir::rota::LayerOp>())
      if (offloads(kind))
        kinds.insert(kind.getSymName());
    std::vector<bool> chosen;
    for (auto chunk : program.getChunks().getChunks().getAsRange<ChunkAttr>())
      chosen.push_back(llvm::any_of(chunk.getKinds(), [&](auto kind) {
        return kinds.contains(kind.getValue());
      }));
    return chosen;
  }
};

} // namespace
} // namespace mlir::pipe

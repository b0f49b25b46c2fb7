// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline/Program.h"

#include "passes/pipeline/timeline/Simulator.h"
#include "passes/pipeline/timeline/TimelineVerifier.h"

namespace mlir::pipe {

ProgramOp findProgram(ModuleOp module) {
  auto programs = module.getOps<ProgramOp>();
  int64_t count = std::distance(programs.begin(), programs.end());
  if (count == 1)
    return *programs.begin();
  module.emitError() << "expected one 'pipe.program' in the module, got "
                     << count;
  return {};
}

TimelineOp findTimeline(ModuleOp module) {
  ProgramOp program = findProgram(module);
  if (!program)
    return {};
  TimelineOp timeline = program.getTimeline();
  if (!timeline)
    program.emitError("expected a 'pipe.timeline' in the program, got none");
  return timeline;
}

LogicalResult verifyTimelineOp(TimelineOp timeline) {
  constexpr size_t kMostShown = 20;
  auto violations = ::rota::pipe::verifyTimeline(timeline.read());
  for (size_t i = 0; i < violations.size() && i < kMostShown; ++i)
    timeline.emitError() << "timeline '" << timeline.getSchedule() << "', "
                         << violations[i].str();
  if (violations.size() > kMostShown)
    timeline.emitError() << "timeline '" << timeline.getSchedule() << "', and "
                         << violations.size() - kMostShown << " more";
  return success(violations.empty());
}

double bubbleOf(ProgramOp program, const ::rota::pipe::Timeline &timeline) {
  ::rota::pipe::CostTable costs;
  for (auto chunk : program.getChunks().getChunks().getAsRange<ChunkAttr>()) {
    double layers = static_cast<double>(chunk.getLayers().size());
    costs.chunks.push_back({layers, 2 * layers, layers, layers});
  }
  auto simulation = ::rota::pipe::simulate(timeline, costs);
  return simulation ? simulation->bubble : 0;
}

} // namespace mlir::pipe

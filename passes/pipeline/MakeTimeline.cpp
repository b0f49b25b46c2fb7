// SPDX-License-Identifier: Apache-2.0
//
// Writes the program's timeline. See Passes.td.
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/Program.h"
#include "passes/pipeline/drawing/Comparison.h"
#include "passes/pipeline/search/Forms.h"
#include "passes/pipeline/timeline/GradientOrder.h"
#include "passes/pipeline/timeline/TimelineVerifier.h"
#include "passes/pipeline/timeline/UnpipelinedLayers.h"
#include "runtime/text/Text.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Support/MemoryBuffer.h"

#include <climits>

namespace mlir::pipe {

#define GEN_PASS_DEF_MAKETIMELINE
#include "passes/pipeline/Passes.h.inc"

namespace {

using ::rota::pipe::Timeline;

struct MakeTimelinePass : impl::MakeTimelineBase<MakeTimelinePass> {
  using MakeTimelineBase::MakeTimelineBase;

  void runOnOperation() override {
    ProgramOp program = findProgram(getOperation());
    if (!program)
      return signalPassFailure();
    if (TimelineOp timeline = program.getTimeline()) {
      timeline.emitError("the program has a timeline already");
      return signalPassFailure();
    }
    if (delay < 1 || delay > ::rota::pipe::kOutgoingBuffers) {
      program.emitError("'delay': expected 1 or 2, got ") << delay.getValue();
      return signalPassFailure();
    }
    std::string error = ::rota::pipe::checkActivationBound(activations);
    if (!error.empty()) {
      program.emitError("'activations': ") << error;
      return signalPassFailure();
    }
    bool isFile = StringRef(schedule).ends_with(".csv");
    std::optional<Timeline> timeline =
        isFile ? readFile(program, error) : generate(program, error);
    if (!timeline) {
      program.emitError() << (isFile ? "'schedule': " : "") << error;
      return signalPassFailure();
    }
    std::string reordered = ::rota::pipe::reorderedGradients(*timeline);
    if (!reordered.empty())
      remark::analysis(
          program.getLoc(),
          remark::RemarkOpts::name("gradient-order").category("pipeline"))
          << remark::reason("gradients are added in another order than that of "
                            "ascending microbatches, so their bits differ from "
                            "those of other schedules")
          << remark::metric("Schedule", schedule.getValue())
          << remark::metric("Actions", reordered);
    OpBuilder builder(&getContext());
    builder.setInsertionPointToEnd(&program.getBody().front());
    TimelineOp::create(builder, program.getLoc(), schedule, *timeline);
  }

private:
  std::optional<Timeline> generate(ProgramOp program, std::string &error) {
    using namespace ::rota::pipe;
    SearchReport report;
    ScheduleRequest request{program.getShape(), int(delay), splitBackward, 0,
                            pairs};
    if (!isSearch(schedule)) {
      request.activations = chunkActivations(activations, request.shape);
      return makeTimeline(schedule, request, error);
    }
    request.communicates = true;
    request.anyPlacement = anyPlacement;
    bool isOneChunk = request.shape.repeats == 1;
    OpenForm open{anyRepeats && isOneChunk, anySplit && !splitBackward};
    std::optional<Timeline> timeline = searchForms(
        schedule, request, open, activations,
        [&](const Shape &shape) {
          return costsOfShape(program, shape,
                              open.repeats || open.splitBackward);
        },
        report, error);
    if (!timeline)
      return std::nullopt;
    if (timeline->shape != request.shape)
      reshape(program, timeline->shape);
    remarkSearch(program, report);
    return timeline;
  }

  /// The costs of the program's actions if it had `shape`; nothing where some
  /// chunk would have no layer. Where forms are compared and layers have no
  /// operations, all layers of a rank take a unit forward and two backward.
  static std::optional<::rota::pipe::CostTable>
  costsOfShape(ProgramOp program, const ::rota::pipe::Shape &shape,
               bool isCompared) {
    std::vector<int64_t> layers = layersOf(program, shape);
    if (layers.empty())
      return std::nullopt;
    ::rota::pipe::CostTable costs = costsOf(program, layers);
    if (costs.chunks.empty() && isCompared) {
      costs.backward = costs.backwardInput + costs.backwardWeight;
      costs = ::rota::pipe::costsOfChunks(shape, costs);
    }
    return costs;
  }

  static void remarkSearch(ProgramOp program,
                           const ::rota::pipe::SearchReport &report) {
    auto decided = remark::analysis(
        program.getLoc(),
        remark::RemarkOpts::name("searched-timeline").category("pipeline"));
    decided << remark::metric("Rules", report.rules)
            << remark::metric("Placement", ::rota::nameOf(report.placement))
            << remark::metric("Repeats", report.repeats)
            << remark::metric("Backwards",
                              report.splitBackward ? "split" : "whole")
            << remark::metric("Makespan", report.makespan)
            << remark::metric("LowerBound", report.lowerBound);
    if (!report.named.empty())
      decided << remark::metric("BestNamed", report.named)
              << remark::metric("BestNamedMakespan", report.namedMakespan);
  }

  /// Gives the program the placement and the repeats of `shape`.
  static void reshape(ProgramOp program, const ::rota::pipe::Shape &shape) {
    std::vector<int64_t> layers = layersOf(program, shape);
    program.setPlacement(static_cast<Placement>(shape.placement));
    program.setRepeats(shape.repeats);
    program.getChunks().setChunksAttr(
        makeChunks(program.getStackOp(), shape, layers));
  }

  std::optional<Timeline> readFile(ProgramOp program, std::string &error) {
    if (splitBackward) {
      error = "expected a named schedule with 'split-backward', got '" +
              schedule + "'";
      return std::nullopt;
    }
    if (pairs) {
      error = "expected a named schedule with 'pairs', got '" + schedule +
              "', which keeps its own";
      return std::nullopt;
    }
    auto buffer = llvm::MemoryBuffer::getFile(schedule);
    if (!buffer) {
      error = "cannot read '" + schedule + "': " + buffer.getError().message();
      return std::nullopt;
    }
    StringRef text = (*buffer)->getBuffer();
    auto rows = ::rota::pipe::parseCsv({text.data(), text.size()}, error);
    if (!rows) {
      error = schedule + ": " + error;
      return std::nullopt;
    }
    ::rota::pipe::Shape shape = program.getShape();
    if (rows->size() != size_t(shape.stages)) {
      error = schedule + ": expected " + ::rota::counted(shape.stages, "row") +
              ", one for each stage, got " + std::to_string(rows->size());
      return std::nullopt;
    }
    std::optional<Timeline> timeline =
        Timeline{shape, std::move(*rows), int(delay)};
    if (shape.hasUnpipelined)
      timeline = complete(std::move(*timeline), error);
    if (timeline && !isBounded(*timeline, error))
      return std::nullopt;
    return timeline;
  }

  /// Whether a file holds no more than `activations`. One that breaks rules is
  /// left to `verify-timeline`.
  bool isBounded(const Timeline &timeline, std::string &error) {
    if (activations == 0 || !::rota::pipe::verifyTimeline(timeline).empty())
      return true;
    error = ::rota::pipe::checkActivations(
        timeline, ::rota::pipe::chunkActivations(activations, timeline.shape));
    if (!error.empty())
      error = schedule + ": " + error;
    return error.empty();
  }

  /// Adds the unpipelined chunk to a file that has the others alone. A file
  /// that breaks rules is left to `verify-timeline`.
  std::optional<Timeline> complete(Timeline timeline, std::string &error) {
    Timeline inner = timeline;
    inner.shape.hasUnpipelined = false;
    if (!::rota::pipe::verifyTimeline(inner).empty())
      return timeline;
    return ::rota::pipe::withUnpipelinedLayers(std::move(inner), error);
  }
};

} // namespace
} // namespace mlir::pipe

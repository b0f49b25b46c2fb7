// SPDX-License-Identifier: Apache-2.0
//
// The circular schedule: at forward iteration t, stage s works on p = t - d*s,
// which is microbatch p mod M of repeat p div M; M*R + d*(S-1) iterations in
// each direction. 2 stages, 2 repeats, 4 microbatches, d = 1 (chunk, kind,
// microbatch):
//
//   rank 0  0F0 0F1 0F2 0F3 2F0 2F1 2F2 2F3 .   .   2B0 2B1 2B2 2B3 0B0 ...
//   rank 1  .   1F0 1F1 1F2 1F3 3F0 3F1 3F2 3F3 3B0 3B1 3B2 3B3 1B0 1B1 ...
//
// A stage is never idle between its first and last iteration when M >= d*S: the
// last stage finishes a microbatch d*S iterations after the first began it, and
// the first needs it M iterations after. With M = d*S the first stage uses it
// at once; with M > d*S the activation waits on stage 0 (circular storage).
// The backward mirrors this with the stages reversed and the microbatches
// ascending, so its cotangents wait on the last stage.
#include "passes/pipeline/schedules/Schedules.h"

#include "runtime/text/Text.h"

namespace rota::pipe {
namespace {

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &error) {
  const Shape &shape = request.shape;
  if (request.delay > 1 &&
      shape.microbatches < int64_t(request.delay) * shape.stages) {
    error = "expected at least 2 * stages microbatches for delayed forwarding, "
            "got " +
            counted(shape.microbatches, "microbatch", "es") + " and " +
            counted(shape.stages, "stage");
    return std::nullopt;
  }
  // Iterations without work are not written, so each rank's row is p in order.
  Timeline timeline{shape, {}, request.delay};
  for (int rank = 0; rank < shape.stages; ++rank) {
    std::vector<Action> &row = timeline.ranks.emplace_back();
    int pairs = shape.repeats * shape.microbatches;
    for (int p = 0; p < pairs; ++p)
      row.push_back({shape.chunkOf(rank, p / shape.microbatches),
                     ActionKind::Forward, p % shape.microbatches});
    for (int p = 0; p < pairs; ++p)
      row.push_back(
          {shape.chunkOf(rank, shape.repeats - 1 - p / shape.microbatches),
           ActionKind::Backward, p % shape.microbatches});
  }
  return timeline;
}

} // namespace

const Schedule scheduleCircular = {
    .name = "circular",
    .description =
        "gpipe over several repeats, microbatches a multiple of stages",
    .generate = generate,
    .rule = {Placement::Loop, 0, MicrobatchRule::MultipleOfStages,
             "in a v the last rank begins odd repeats, so that repeats do not "
             "follow "
             "one another without idle iterations; gpipe takes v"},
    .maxDelay = 2};

} // namespace rota::pipe

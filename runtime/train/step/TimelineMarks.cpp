// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/TimelineMarks.h"
#include "runtime/Abi.h"

#include <algorithm>
#include <cstddef>
#include <set>

namespace rota {

/// Whether a training run of these calls writes losses, auxiliary sums or
/// tables, which a backward reads at most.
static bool writesLosses(const ActionTemplate &actionTemplate) {
  bool isForward = actionTemplate.kind == ActionKind::Forward;
  if (!isForward && !makesInputGradient(actionTemplate.kind))
    return false;
  std::vector<size_t> fields = {offsetof(RotaFrame, loss),
                                offsetof(RotaFrame, auxiliary)};
  if (isForward)
    fields.push_back(offsetof(RotaFrame, observed));
  return std::any_of(actionTemplate.calls.begin(), actionTemplate.calls.end(),
                     [&](const Call &c) {
                       return std::any_of(
                           fields.begin(), fields.end(), [&](size_t field) {
                             return !c.frame[field / sizeof(void *)].isNone();
                           });
                     });
}

TimelineMarks findMarks(const Program &program, int stageNumber) {
  const Stage &stage = program.stages[stageNumber];
  auto actionCount = static_cast<int>(stage.actions.size());
  std::set<int64_t> received; // copies of other stages' tensors
  const std::vector<Stage> &stages = program.stages;
  for (int owner = 0; owner < static_cast<int>(stages.size()); ++owner)
    for (const Update &update : stages[owner].updates)
      for (const ArenaAddress &copy : update.copies)
        if (owner != stageNumber && copy.stage == stageNumber)
          received.insert(copy.offset);
  TimelineMarks marks{actionCount, actionCount, actionCount};
  for (int a = actionCount - 1; a >= 0; --a) {
    const ActionTemplate &actionTemplate = stage.templateOf(a);
    bool readsReceived =
        actionTemplate.kind == ActionKind::Unshard &&
        std::any_of(actionTemplate.transfers.begin(),
                    actionTemplate.transfers.end(), [&](auto &t) {
                      return received.count(stage.resolve(a, t.source));
                    });
    if (isCompute(actionTemplate.kind) || readsReceived)
      marks.firstUse = a;
    if (makesGradient(actionTemplate.kind) ||
        makesInputGradient(actionTemplate.kind))
      marks.firstGradient = a;
    if (marks.lastLoss == actionCount && writesLosses(actionTemplate))
      marks.lastLoss = a;
  }
  // Without losses of its own the rank need not wait for anything but, in the
  // same places, the weights.
  if (marks.lastLoss == actionCount)
    marks.lastLoss = program.auxiliaryLosses.empty()
                         ? 0
                         : std::min(marks.firstGradient, actionCount - 1);
  return marks;
}

} // namespace rota

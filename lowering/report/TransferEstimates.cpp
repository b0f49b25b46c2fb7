// SPDX-License-Identifier: Apache-2.0
#include "lowering/report/TransferEstimates.h"

#include "ir/rota/cost/Traffic.h"
#include "lowering/executable/Collectives.h"
#include "llvm/ADT/STLExtras.h"

namespace rota {

const FunctionCost *TransferEstimates::costOf(int task) const {
  if (task < 0)
    return nullptr;
  auto found = costs.find(program.tasks[task]);
  return found == costs.end() ? nullptr : &found->second;
}

/// Seconds of the action's calls, with the collectives inside them.
double TransferEstimates::computeSeconds(const ActionTemplate &form) const {
  double seconds = 0;
  for (const Call &call : form.calls)
    if (const FunctionCost *cost = costOf(call.task))
      seconds += cost->seconds + cost->exposed();
  return seconds;
}

mlir::rota::MeshGroup
TransferEstimates::groupOf(const std::vector<int> &axes) const {
  mlir::rota::MeshGroup group;
  for (int axis : axes) {
    int64_t stride = 1;
    for (size_t later = axis + 1; later < program.mesh.size(); ++later)
      stride *= program.mesh[later].size;
    group.parts.push_back({program.mesh[axis].size, stride});
  }
  return group;
}

double TransferEstimates::secondsOfMessage(int64_t bytes) const {
  auto stages = llvm::find_if(
      program.mesh, [](const MeshAxis &axis) { return axis.name == "stage"; });
  std::vector<int> axes;
  if (stages != program.mesh.end())
    axes.push_back(static_cast<int>(stages - program.mesh.begin()));
  return machine.secondsOfMessage(static_cast<double>(bytes), groupOf(axes));
}

double TransferEstimates::secondsOf(const Collective &collective) const {
  return mlir::rota::traffic::secondsOf(collective.kind, bytesOf(collective),
                                        groupOf(collective.axes), machine);
}

double TransferEstimates::secondsOf(const Transfer &transfer) const {
  if (transfer.collective >= 0)
    return secondsOf(program.collectives[transfer.collective]);
  auto bytes = static_cast<double>(transfer.bytes);
  return bytes > 0 ? machine.secondsOfHostCopy(bytes) : 0;
}

double TransferEstimates::transferSeconds(const Stage &stage,
                                          const ActionTemplate &form) const {
  double seconds = 0;
  for (const Transfer &transfer : form.transfers)
    if (transfer.collective < 0)
      seconds += secondsOf(transfer);
  for (int collective : collectivesOf(stage, form))
    seconds += secondsOf(program.collectives[collective]);
  return seconds;
}

std::vector<int>
TransferEstimates::collectivesOf(const Stage &stage,
                                 const ActionTemplate &form) const {
  std::vector<int> list;
  for (const Transfer &transfer : form.transfers)
    if (transfer.collective >= 0)
      list.push_back(transfer.collective);
  for (int update : form.updates)
    list.push_back(exchangeOf(program, stage, form, update));
  return list;
}

double TransferEstimates::slowsWork(const Stage &stage,
                                    const ActionTemplate &form) const {
  double seconds = transferSeconds(stage, form), taken = 0;
  for (int number : collectivesOf(stage, form)) {
    const Collective &collective = program.collectives[number];
    taken += secondsOf(collective) *
             machine.levelOf(groupOf(collective.axes)).slowsWork;
  }
  return seconds > 0 ? std::min(1.0, taken / seconds) : 0;
}

double TransferEstimates::secondsOf(const Stage &stage,
                                    const ActionTemplate &form) const {
  if (isCompute(form.kind))
    return computeSeconds(form);
  return isMessage(form.kind) ? secondsOfMessage(form.bytes)
                              : transferSeconds(stage, form);
}

std::vector<int> TransferEstimates::atStepEnd(const Update &update,
                                              const InTimeline &done) const {
  const Parameter &p = program.parameters[update.parameter];
  std::vector<int> list(p.reduce.begin() + done.sums, p.reduce.end());
  if (p.refresh >= 0 && !done.refreshes)
    list.push_back(p.refresh);
  return list;
}

double TransferEstimates::stepEndSeconds(const Stage &stage) const {
  std::vector<InTimeline> done = updatesInTimeline(stage);
  double seconds = 0;
  for (size_t u = 0; u < stage.updates.size(); ++u)
    for (int collective : atStepEnd(stage.updates[u], done[u]))
      seconds += secondsOf(program.collectives[collective]);
  return seconds;
}

double TransferEstimates::updateSeconds(const Stage &stage) const {
  double seconds = 0;
  for (const Update &update : stage.updates) {
    const Parameter &parameter = program.parameters[update.parameter];
    for (int task : {parameter.updateTask, parameter.squareTask})
      if (const FunctionCost *cost = costOf(task))
        seconds += cost->seconds;
  }
  if (machine.cores > 0) // each of which updates for several ranks
    seconds *= std::max(1.0, static_cast<double>(rankCount(program)) /
                                 static_cast<double>(machine.cores));
  return seconds;
}

void addEstimates(const FunctionCosts &costs,
                  const mlir::rota::Machine &machine, Program &program) {
  TransferEstimates estimates(costs, program, machine);
  for (Stage &stage : program.stages)
    for (ActionTemplate &form : stage.templates) {
      form.estimate = estimates.secondsOf(stage, form);
      if (isTransfer(form.kind))
        form.slowsWork = estimates.slowsWork(stage, form);
    }
}

double TransferEstimates::lentShare() const {
  auto sharers =
      static_cast<double>(std::min(machine.cores, rankCount(program)));
  double own = 0, alone = 0;
  forEachCall(program, costs, [&](const FunctionCost &cost, double times) {
    own += times * cost.seconds;
    alone += times * cost.secondsAlone;
  });
  bool isKnown = sharers > 1 && alone > 0;
  return isKnown ? std::clamp((own / alone - 1) / (sharers - 1), 0.0, 1.0) : 0;
}

pipe::CostTable TransferEstimates::costTable(int chunks) const {
  pipe::CostTable table;
  // The rates of a rank are those of its part of the cores.
  table.cores = std::min(machine.cores, rankCount(program));
  table.ranksOfRow =
      rankCount(program) / static_cast<int64_t>(program.stages.size());
  if (machine.cores > 0)
    table.lent = lentShare();
  table.chunks.assign(chunks, {});
  table.transfers.assign(chunks, {});
  table.slowsWork.assign(chunks, {});
  double slowest = 0;
  std::map<std::pair<int, ActionKind>, int> forms; // number of each
  for (const Stage &stage : program.stages)
    for (const ActionTemplate &form : stage.templates) {
      if (isCompute(form.kind))
        table.chunks[form.chunk][static_cast<int>(form.kind)] =
            computeSeconds(form);
      else if (isSend(form.kind))
        table.send = secondsOfMessage(form.bytes);
      else if (isTransfer(form.kind)) {
        int stream = transferStream(form.kind);
        int count = ++forms[{form.chunk, form.kind}];
        auto addToMean = [&](double &mean, double value) {
          mean += (value - mean) / count;
        };
        double share = slowsWork(stage, form);
        addToMean(table.transfers[form.chunk][stream],
                  transferSeconds(stage, form));
        addToMean(table.slowsWork[form.chunk][stream], share);
        slowest = std::max(slowest, share);
      }
    }
  if (slowest == 0)
    table.slowsWork.clear();
  return table;
}

int64_t TransferEstimates::bytesOf(const Collective &collective) const {
  int64_t ranks = groupSize(program.mesh, collective.axes);
  int64_t bytes = collective.outer * collective.size * collective.inner *
                  byteSize(collective.type);
  if (collective.kind == Collective::Kind::AllGather ||
      collective.kind == Collective::Kind::ReduceScatter)
    bytes = (bytes + ranks - 1) / ranks; // of one rank's part
  return mlir::rota::traffic::wireBytes(collective.kind, bytes, ranks);
}

int64_t TransferEstimates::bytesOf(const Transfer &transfer) const {
  return transfer.collective < 0
             ? transfer.bytes
             : bytesOf(program.collectives[transfer.collective]);
}

} // namespace rota

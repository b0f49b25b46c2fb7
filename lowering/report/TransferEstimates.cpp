// SPDX-License-Identifier: Apache-2.0
#include "lowering/report/TransferEstimates.h"

#include "ir/rota/cost/Traffic.h"

#include <numeric>

namespace rota {

const FunctionCost *TransferEstimates::costOf(int task) const {
  if (task < 0)
    return nullptr;
  auto found = costs.find(program.tasks[task]);
  return found == costs.end() ? nullptr : &found->second;
}

std::vector<double>
TransferEstimates::exposedSeconds(const FunctionCost &cost) const {
  std::vector<int> order(cost.steps.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> all =
      mlir::rota::exposedSeconds(cost.steps, order, assumptions);
  std::vector<double> exposed;
  for (const CollectiveUse &use : cost.collectives)
    exposed.push_back(all[use.step]);
  return exposed;
}

/// Seconds of the action's calls, with the collectives inside them.
double TransferEstimates::computeSeconds(const ActionTemplate &form) const {
  double seconds = 0;
  for (const Call &call : form.calls)
    if (const FunctionCost *cost = costOf(call.task)) {
      seconds += assumptions.secondsOfWork(cost->flops);
      for (double exposed : exposedSeconds(*cost))
        seconds += exposed;
    }
  return seconds;
}

double TransferEstimates::secondsOfCollective(int collective) const {
  int64_t bytes = bytesOf(program.collectives[collective]);
  return bytes ? secondsOf(bytes) : 0;
}

double TransferEstimates::transferSeconds(const Stage &stage,
                                          const ActionTemplate &form) const {
  double seconds = 0;
  for (const Transfer &transfer : form.transfers)
    if (int64_t bytes = bytesOf(transfer))
      seconds += secondsOf(bytes);
  for (int update : form.updates)
    seconds += secondsOfCollective(exchangeOf(program, stage, form, update));
  return seconds;
}

double TransferEstimates::secondsOf(const Stage &stage,
                                    const ActionTemplate &form) const {
  if (isCompute(form.kind))
    return computeSeconds(form);
  return isMessage(form.kind) ? secondsOf(form.bytes)
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
      seconds += secondsOfCollective(collective);
  return seconds;
}

void addEstimates(const FunctionCosts &costs, const Assumptions &assumptions,
                  Program &program) {
  TransferEstimates estimates(costs, program, assumptions);
  for (Stage &stage : program.stages)
    for (ActionTemplate &form : stage.templates)
      form.estimate = estimates.secondsOf(stage, form);
}

pipe::CostTable TransferEstimates::costTable(int chunks) const {
  pipe::CostTable table;
  table.chunks.assign(chunks, {});
  table.transfers.assign(chunks, {});
  std::map<std::pair<int, ActionKind>, int> forms; // number of each
  for (const Stage &stage : program.stages)
    for (const ActionTemplate &form : stage.templates) {
      if (isCompute(form.kind))
        table.chunks[form.chunk][static_cast<int>(form.kind)] =
            computeSeconds(form);
      else if (isSend(form.kind))
        table.send = secondsOf(form.bytes);
      else if (isTransfer(form.kind)) {
        double &mean = table.transfers[form.chunk][transferStream(form.kind)];
        int count = ++forms[{form.chunk, form.kind}];
        mean += (transferSeconds(stage, form) - mean) / count;
      }
    }
  return table;
}

int64_t TransferEstimates::bytesOf(const Collective &collective) const {
  namespace traffic = mlir::rota::traffic;
  int64_t ranks = groupSize(program.mesh, collective.axes);
  int64_t whole = collective.outer * collective.size * collective.inner *
                  byteSize(collective.type);
  int64_t part = (whole + ranks - 1) / ranks;
  switch (collective.kind) {
  case Collective::Kind::AllGather:
    return traffic::allGather(part, ranks);
  case Collective::Kind::ReduceScatter:
    return traffic::reduceScatter(part, ranks);
  case Collective::Kind::AllReduce:
    return traffic::allReduce(whole, ranks);
  case Collective::Kind::AllToAll:
    return traffic::allToAll(part, ranks);
  case Collective::Kind::Permute:
    return traffic::permute(whole);
  case Collective::Kind::Slice:
    return 0;
  }
  return 0;
}

int64_t TransferEstimates::bytesOf(const Transfer &transfer) const {
  return transfer.collective < 0
             ? transfer.bytes
             : bytesOf(program.collectives[transfer.collective]);
}

} // namespace rota

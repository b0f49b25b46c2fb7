// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/ActionTransfers.h"
#include "runtime/train/step/UpdateTransfers.h"

namespace rota {

/// A time that never comes: the rank has not waited.
static constexpr double kNever = 1e300;

ActionTransfers::ActionTransfers(Rank &rank, ActionTimes &times)
    : rank(rank), times(times), requests(rank.stage().actions.size()) {
  for (size_t a = 0; a < requests.size(); ++a)
    requests[a].reserve(transferCount(static_cast<int>(a)));
}

size_t ActionTransfers::transferCount(int number) const {
  const ActionTemplate &form = rank.stage().templateOf(number);
  return form.transfers.size() + form.updates.size() + 1;
}

void ActionTransfers::start(int number) {
  const Stage &stage = rank.stage();
  const ActionTemplate &actionTemplate = stage.templateOf(number);
  ActionKind kind = actionTemplate.kind;
  if (isAsynchronous(kind))
    rank.flight().add(FlightEvent::TransferStart, number);
  Communicator &communicator = rank.communicator();
  std::vector<Request> &open = requests[number];
  Stream stream = streamOf(kind);
  void *place = rank.at(stage.resolve(number, actionTemplate.message));
  if (isSend(kind))
    open.push_back(communicator.send(stream, rank.peer(actionTemplate.peer),
                                     place, actionTemplate.bytes));
  if (isReceive(kind))
    open.push_back(communicator.receive(stream, rank.peer(actionTemplate.peer),
                                        place, actionTemplate.bytes));
  for (const Transfer &t : actionTemplate.transfers) {
    int64_t source = stage.resolve(number, t.source);
    int64_t destination = stage.resolve(number, t.destination);
    if (kind == ActionKind::Offload)
      open.push_back(communicator.copy(rank.at(source),
                                       rank.hostAt(destination), t.bytes));
    else if (kind == ActionKind::Fetch)
      open.push_back(communicator.copy(rank.hostAt(source),
                                       rank.at(destination), t.bytes));
    else
      open.push_back(rank.start(stream, t.collective, rank.at(source),
                                rank.at(destination)));
  }
  for (int update : actionTemplate.updates) {
    const Update &u = stage.updates[static_cast<size_t>(update)];
    open.push_back(kind == ActionKind::Refresh
                       ? startRefresh(rank, stream, u)
                       : startSum(rank, stream, u, actionTemplate.round));
  }
}

void ActionTransfers::finish(int number, KeptCore &core) {
  Communicator &communicator = rank.communicator();
  for (Request request : requests[number]) {
    if (!times.isOn()) {
      core.release();
      communicator.wait(request);
      continue;
    }
    if (communicator.isDone(request)) {
      times.add(number, communicator.wait(request), kNever);
      continue;
    }
    core.release();
    double from = communicator.now();
    rank.flight().add(FlightEvent::WaitBegin, number);
    times.add(number, communicator.waitForTurn(request, core), from);
    rank.flight().add(FlightEvent::WaitEnd, number);
  }
  requests[number].clear();
}

} // namespace rota

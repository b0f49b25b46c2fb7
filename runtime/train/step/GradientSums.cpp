// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/GradientSums.h"
#include "runtime/program/UpdatePlaces.h"

#include <algorithm>
#include <utility>

namespace rota {

GradientSums::GradientSums(Rank &rank, bool hasBarrier)
    : rank(rank), hasBarrier(hasBarrier),
      inTimeline(updatesInTimeline(rank.stage())) {
  const Program &program = rank.program();
  for (int s = 0; s < static_cast<int>(program.stages.size()); ++s)
    for (const Update &update : program.stages[s].updates) {
      const Parameter &p = program.parameters[update.parameter];
      int64_t elements = partElements(p.shape, p.storageDivision, program.mesh);
      for (size_t g = 1; g < update.gradients.size(); ++g)
        terms.push_back(
            {&update, s, update.gradients[g], elements, p.gradient});
    }
}

static void add(Rank &rank, ElementType type, void *sum, const void *term,
                int64_t count) {
  ComputeToken token(rank.cores());
  rank.device().add(rank.context(), type, sum, term, count);
}

/// The calling thread holds a core.
static void zero(Rank &rank, int64_t offset, int64_t bytes) {
  if (bytes > 0)
    rank.device().zero(rank.context(), rank.at(offset), bytes);
}

/// Bytes of an accumulator of the parameter.
static int64_t accumulatorBytes(const Program &program, const Parameter &p) {
  return byteSize(p.gradient) *
         partElements(p.shape, p.storageDivision, program.mesh);
}

void GradientSums::settle() {
  for (Request request : std::exchange(sends, {}))
    rank.waitAtStepEnd(request);
  if (sentTerms.empty())
    return;
  ComputeToken token(rank.cores());
  for (const Term *term : std::exchange(sentTerms, {}))
    zero(rank, term->place.offset, term->bytes());
}

void GradientSums::make() {
  int here = rank.stageNumber();
  int64_t most = rank.places().termElements;
  for (const Term &term : terms) {
    if (term.place.stage != here || term.owner == here)
      continue;
    int64_t size = byteSize(term.type);
    for (int64_t at = 0; at < term.elements; at += most)
      sends.push_back(
          rank.communicator().send(Stream::Step, rank.peer(term.owner),
                                   rank.at(term.place.offset + size * at),
                                   size * std::min(most, term.elements - at)));
    sentTerms.push_back(&term);
  }
  for (const Term &term : terms) {
    if (term.owner != here)
      continue;
    addTerm(term);
    if (term.place.stage != here)
      continue;
    ComputeToken token(rank.cores());
    zero(rank, term.place.offset, term.bytes());
  }
  if (hasBarrier)
    settle();
  reduce();
}

void GradientSums::addTerm(const Term &term) {
  if (term.place.stage != term.owner)
    return addReceived(term);
  add(rank, term.type, rank.at(term.update->gradients[0].offset),
      rank.at(term.place.offset), term.elements);
}

/// One message is added while the next one comes.
void GradientSums::addReceived(const Term &term) {
  int64_t sum = term.update->gradients[0].offset;
  Communicator &communicator = rank.communicator();
  int peer = rank.peer(term.place.stage);
  int64_t most = rank.places().termElements, size = byteSize(term.type);
  auto buffer = [&](int which) {
    return rank.runtimeAt(rank.places().terms + 4 * which * most);
  };
  auto receive = [&](int64_t at, int which) -> Request {
    if (at >= term.elements)
      return 0;
    return communicator.receive(Stream::Step, peer, buffer(which),
                                size * std::min(most, term.elements - at));
  };
  Request next = receive(0, 0);
  int which = 0;
  for (int64_t at = 0; at < term.elements; at += most) {
    Request now = next;
    next = receive(at + most, 1 - which);
    rank.waitAtStepEnd(now);
    add(rank, term.type, rank.at(sum + size * at), buffer(which),
        std::min(most, term.elements - at));
    which = 1 - which;
  }
}

/// The collectives that the timeline has not done.
void GradientSums::reduce() {
  const Program &program = rank.program();
  const std::vector<Update> &updates = rank.stage().updates;
  int longest = 0;
  for (const Update &u : updates)
    longest = std::max(
        longest,
        static_cast<int>(program.parameters[u.parameter].reduce.size()));
  // The first collective of all tensors, then the second: tensors in the order
  // of the stage, so that the ranks of a group agree.
  for (int round = 0; round < longest; ++round) {
    std::vector<Request> requests;
    for (size_t u = 0; u < updates.size(); ++u) {
      const Parameter &p = program.parameters[updates[u].parameter];
      if (round >= inTimeline[u].sums &&
          round < static_cast<int>(p.reduce.size()))
        requests.push_back(startSum(rank, Stream::Step, updates[u], round));
    }
    for (Request request : requests)
      rank.waitAtStepEnd(request);
  }
  // The update zeroes its part of the sum alone.
  ComputeToken token(rank.cores());
  for (const Update &u : updates)
    if (program.parameters[u.parameter].refresh >= 0)
      zeroOthers(u);
}

/// Zeroes the accumulator but for the part that the update reads there.
void GradientSums::zeroOthers(const Update &update) {
  const Program &program = rank.program();
  const Parameter &p = program.parameters[update.parameter];
  int64_t begin = update.gradients[0].offset;
  int64_t end = begin + accumulatorBytes(program, p);
  if (isGradientInPlace(program, update)) {
    int64_t own = gradientPlace(program, update, rank.coordinates());
    zero(rank, begin, own - begin);
    begin = own + byteSize(p.gradient) *
                      partElements(p.shape, p.optimizerDivision, program.mesh);
  }
  zero(rank, begin, end - begin);
}

void GradientSums::drop() {
  const Program &program = rank.program();
  ComputeToken token(rank.cores());
  for (const Stage &stage : program.stages)
    for (const Update &u : stage.updates) {
      const Parameter &p = program.parameters[u.parameter];
      for (const ArenaAddress &place : u.gradients)
        if (place.stage == rank.stageNumber())
          zero(rank, place.offset, accumulatorBytes(program, p));
    }
}

} // namespace rota

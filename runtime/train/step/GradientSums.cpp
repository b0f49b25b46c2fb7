// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/GradientSums.h"
#include "runtime/program/Part.h"

#include <algorithm>
#include <utility>

namespace rota {

GradientSums::GradientSums(Rank &rank, bool hasBarrier)
    : rank(rank), hasBarrier(hasBarrier) {
  const Program &program = rank.program();
  for (int s = 0; s < static_cast<int>(program.stages.size()); ++s)
    for (const Update &update : program.stages[s].updates) {
      const Parameter &p = program.parameters[update.parameter];
      int64_t elements = partElements(p.shape, p.storageDivision, program.mesh);
      for (size_t g = 1; g < update.gradients.size(); ++g)
        terms.push_back({&update, s, update.gradients[g], elements});
    }
}

static void add(Rank &rank, void *sum, const void *term, int64_t count) {
  ComputeToken token(rank.cores());
  rank.device().add(rank.context(), static_cast<float *>(sum),
                    static_cast<const float *>(term), count);
}

static void zero(Rank &rank, int64_t offset, int64_t count) {
  ComputeToken token(rank.cores());
  rank.device().zero(rank.context(), rank.at(offset), 4 * count);
}

void GradientSums::settle() {
  for (Request request : std::exchange(sends, {}))
    rank.communicator().wait(request);
  for (const Term *term : std::exchange(sentTerms, {}))
    zero(rank, term->place.offset, term->elements);
}

void GradientSums::make() {
  int here = rank.stageNumber();
  int64_t most = rank.places().termElements;
  for (const Term &term : terms) {
    if (term.place.stage != here || term.owner == here)
      continue;
    for (int64_t at = 0; at < term.elements; at += most)
      sends.push_back(
          rank.communicator().send(Stream::Step, rank.peer(term.owner),
                                   rank.at(term.place.offset + 4 * at),
                                   4 * std::min(most, term.elements - at)));
    sentTerms.push_back(&term);
  }
  for (const Term &term : terms) {
    if (term.owner != here)
      continue;
    addTerm(term);
    if (term.place.stage == here)
      zero(rank, term.place.offset, term.elements);
  }
  if (hasBarrier)
    settle();
  reduce();
}

void GradientSums::addTerm(const Term &term) {
  if (term.place.stage != term.owner)
    return addReceived(term);
  add(rank, rank.at(term.update->gradients[0].offset),
      rank.at(term.place.offset), term.elements);
}

/// One message is added while the next one comes.
void GradientSums::addReceived(const Term &term) {
  int64_t sum = term.update->gradients[0].offset;
  Communicator &communicator = rank.communicator();
  int peer = rank.peer(term.place.stage);
  int64_t most = rank.places().termElements;
  auto buffer = [&](int which) {
    return rank.runtimeAt(rank.places().terms + 4 * which * most);
  };
  auto receive = [&](int64_t at, int which) -> Request {
    if (at >= term.elements)
      return 0;
    return communicator.receive(Stream::Step, peer, buffer(which),
                                4 * std::min(most, term.elements - at));
  };
  Request next = receive(0, 0);
  int which = 0;
  for (int64_t at = 0; at < term.elements; at += most) {
    Request now = next;
    next = receive(at + most, 1 - which);
    communicator.wait(now);
    add(rank, rank.at(sum + 4 * at), buffer(which),
        std::min(most, term.elements - at));
    which = 1 - which;
  }
}

void GradientSums::reduce() {
  const Program &program = rank.program();
  const std::vector<Update> &updates = rank.stage().updates;
  size_t longest = 0;
  for (const Update &u : updates)
    longest = std::max(longest, program.parameters[u.parameter].reduce.size());
  auto cuts = [&](int collective) { // to the optimizer's division
    return program.collectives[collective].kind != Collective::Kind::AllReduce;
  };
  // The first collective of all tensors, then the second: tensors in the order
  // of the stage, so that the ranks of a group agree.
  for (size_t i = 0; i < longest; ++i) {
    std::vector<Request> requests;
    for (const Update &u : updates) {
      const std::vector<int> &list = program.parameters[u.parameter].reduce;
      if (i >= list.size())
        continue;
      void *sum = rank.at(u.gradients[0].offset);
      requests.push_back(rank.start(Stream::Step, list[i], sum,
                                    cuts(list[i]) ? rank.at(u.gradient) : sum));
    }
    for (Request request : requests)
      rank.communicator().wait(request);
  }
  // The update zeroes its part of the sum alone.
  for (const Update &u : updates) {
    const Parameter &p = program.parameters[u.parameter];
    if (!p.reduce.empty() && cuts(p.reduce.back()))
      zero(rank, u.gradients[0].offset,
           partElements(p.shape, p.storageDivision, program.mesh));
  }
}

void GradientSums::drop() {
  const Program &program = rank.program();
  for (const Stage &stage : program.stages)
    for (const Update &u : stage.updates) {
      const Parameter &p = program.parameters[u.parameter];
      for (const ArenaAddress &place : u.gradients)
        if (place.stage == rank.stageNumber())
          zero(rank, place.offset,
               partElements(p.shape, p.storageDivision, program.mesh));
    }
}

} // namespace rota

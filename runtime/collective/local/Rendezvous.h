// SPDX-License-Identifier: Apache-2.0
//
// One transfer between ranks of one process. Once all members have arrived,
// each reads its elements directly from the memory of the others. The work is
// cut into pieces, which any thread may do. No member leaves before all pieces
// of all members are done.
#ifndef ROTA_RUNTIME_COLLECTIVE_LOCAL_RENDEZVOUS_H
#define ROTA_RUNTIME_COLLECTIVE_LOCAL_RENDEZVOUS_H

#include "runtime/collective/Blocks.h"
#include "runtime/collective/Exchange.h"

#include <optional>

namespace rota {

class Rendezvous : public Exchange {
public:
  /// The one member of a copy has both source and destination.
  explicit Rendezvous(const Exchange &exchange);

  const std::vector<int> &ranks() const { return group.ranks; }

  struct Member {
    bool arrived = false;
    const void *source = nullptr;
    void *destination = nullptr;
    int64_t pieces = 0, claimed = 0,
            finished = 0; // pieces of the current phase
    int64_t perClaim = 1; // pieces
    TransferTime span;
  };
  std::vector<Member> members;
  int64_t number = 0;    // among the rendezvous of one sequence
  bool isShared = false; // threads claim its pieces one by one
  bool isOver = false;   // members may leave

  /// Registers member `index`. True when it is the last.
  bool arrive(int index, const void *source, void *destination);
  /// True when this member never has a piece: the sender of a message.
  bool isIdle(int index) const { return isMessage && index + 1 < int(size()); }
  /// Bytes that all members read together.
  int64_t bytes() const;

  /// Pieces from `begin` to `end`, that not included.
  struct Pieces {
    int64_t begin, end;
  };
  /// Claims pieces of the member that no thread works on, if there are any now:
  /// one, or as many small ones as have its bytes. Many ranks have small ones,
  /// and claims take a lock of all ranks.
  std::optional<Pieces> claim(int index);
  /// Does the pieces. Those of one phase are independent of each other; safe to
  /// call beside every other function.
  void take(int index, Pieces pieces) const;
  /// Marks pieces as done. True when the whole phase ended with them.
  bool finish(int index, Pieces pieces);
  /// Does all pieces of all phases, for all members.
  void takeAll();

  /// True when all pieces of the member are done in all phases.
  bool hasTaken(int index) const {
    return phasesLeft == 0 || (phasesLeft == 1 && members[index].finished ==
                                                      members[index].pieces);
  }
  /// True when all pieces of all members are done.
  bool isComplete() const { return phasesLeft == 0; }

private:
  void beginPhase();
  TransferBlock block(int from, int to) const;
  int64_t piecesOf(int64_t elements) const;
  void reduce(int index, int64_t piece) const;
  void copy(int index, int64_t piece) const;

  int arrivals = 0;
  int phasesLeft = 1;
  int64_t unfinished = 0; // pieces of the current phase, of all members
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_LOCAL_RENDEZVOUS_H

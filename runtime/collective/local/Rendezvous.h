// SPDX-License-Identifier: Apache-2.0
//
// One transfer between ranks of one process. Once all members have come, each
// takes what is its own straight out of the others' memory, cut into pieces
// that any threads may work off; nobody leaves before all have taken.
#ifndef ROTA_RUNTIME_COLLECTIVE_LOCAL_RENDEZVOUS_H
#define ROTA_RUNTIME_COLLECTIVE_LOCAL_RENDEZVOUS_H

#include "runtime/collective/Blocks.h"

#include <memory>
#include <optional>

namespace rota {

class Rendezvous {
public:
  /// The members of a collective, or of a message: sender and receiver. A
  /// message to oneself has one member, who brings source and destination.
  Rendezvous(Stream stream, const Collective &collective,
             const RankGroup &group);
  Rendezvous(Stream stream, int sender, int receiver, int64_t bytes);

  const Stream stream;
  const std::vector<int> &ranks() const { return group.ranks; }

  /// Why a second member cannot be at this rendezvous with what it starts;
  /// empty when it can.
  std::string disagreement(const Rendezvous &other) const;
  /// "all-gather of [1, 64, 8] f32", "message of 256 bytes".
  std::string describe() const;

  struct Member {
    bool arrived = false;
    const void *source = nullptr;
    void *destination = nullptr;
    int64_t pieces = 0, claimed = 0, finished = 0; // of the current phase
    TransferTime span;
  };
  std::vector<Member> members;
  int64_t number = 0;  // among the rendezvous of one sequence
  bool isOver = false; // members may leave

  /// Member `index` comes. True when it was the last.
  bool arrive(int index, const void *source, void *destination);
  /// True when this member never has anything to take.
  bool isIdle(int index) const { return isMessage && index + 1 < int(size()); }
  /// Bytes that all members take together.
  int64_t bytes() const;

  /// A piece that nobody works on, if the member has one now.
  std::optional<int64_t> claim(int index);
  /// Takes the piece. Pieces of one phase are independent of each other, and
  /// this may run beside everything else.
  void take(int index, int64_t piece) const;
  /// Says that a piece was taken. True when the whole phase ended with it.
  bool finish(int index);
  /// Takes all that there is, for all members.
  void takeAll();

  /// The member has taken all that it ever will.
  bool hasTaken(int index) const {
    return phasesLeft == 0 || (phasesLeft == 1 && members[index].finished ==
                                                      members[index].pieces);
  }
  /// All members have taken all.
  bool isComplete() const { return phasesLeft == 0; }

private:
  size_t size() const { return group.ranks.size(); }
  void beginPhase();
  TransferBlock block(int from, int to) const;
  int64_t piecesOf(int64_t elements) const;
  void reduce(int index, int64_t piece) const;
  void copy(int index, int64_t piece) const;

  Collective collective; // of a message: only its size counts
  RankGroup group;
  bool isMessage = false;
  int64_t elementBytes = 1;
  int arrivals = 0;
  int phasesLeft = 1;
  int64_t unfinished = 0; // pieces of the current phase, of all members
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_LOCAL_RENDEZVOUS_H

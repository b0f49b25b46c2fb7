// SPDX-License-Identifier: Apache-2.0
//
// The remaining work of one transfer on this rank: messages to post, elements
// to pack, sum and copy. Calls no MPI. All members cut their elements into the
// same pieces, so that sums and copies overlap with messages under way.
#ifndef ROTA_RUNTIME_COLLECTIVE_MPI_OPERATION_H
#define ROTA_RUNTIME_COLLECTIVE_MPI_OPERATION_H

#include "runtime/collective/Blocks.h"

#include <memory>
#include <optional>

namespace rota {

/// A piece in flight to or from a peer.
struct Piece {
  int peer = 0; // a rank
  bool isSend = false;
  char *data = nullptr;
  int64_t bytes = 0;
  size_t flow = 0;
  int64_t number = 0;             // in the flow
  std::unique_ptr<char[]> packed; // owns `data` unless that is in a tensor
};

class Operation {
public:
  /// A collective; in a group of one rank it has no messages.
  Operation(const Collective &collective, const RankGroup &group,
            const void *source, void *destination);
  /// A message; exactly one of source and destination is not null.
  Operation(int peer, const void *source, void *destination, int64_t bytes);

  /// The next piece to post, if there is one now. Pieces between two ranks
  /// leave and are expected in the same order.
  std::optional<Piece> next();
  /// Takes back a piece that was posted and has been sent or received.
  void finish(Piece piece);
  /// Does one piece of the work that needs no message. False: there is none
  /// now. `isFirst`: all earlier transfers of its stream and group are
  /// complete.
  bool work(bool isFirst);
  bool isComplete() const;

  std::string describe() const;

  TransferTime span;

private:
  /// All pieces between this rank and one peer, in one direction.
  struct Flow {
    int peer = 0;
    bool isSend = false;
    TransferRows rows; // rows of this rank's buffer
    char *buffer = nullptr;
    int64_t pieces = 0, posted = 0, finished = 0;
    std::vector<std::unique_ptr<char[]>> slots; // terms of sums, by piece
  };
  void addFlow(int member, bool isSend, const TransferRows &rows,
               const void *buffer);
  void beginReduction();
  void beginCopies(bool spreads);
  TransferBlock blockTo(int from, int to) const;
  int64_t piecesOf(int64_t elements) const;
  bool canPost(const Flow &flow) const;
  bool hasTerms(int64_t piece) const;
  void sumPiece(int64_t piece);

  Collective collective;
  RankGroup group;
  bool isMessage = false;
  bool isWhole = false; // a small AllReduce: each member sums everything
  int64_t elementBytes = 1;
  const char *source = nullptr;
  char *destination = nullptr;
  std::vector<Flow> flows;
  size_t turn = 0; // the flow that goes first
  // Own elements that are copied or summed, in pieces.
  TransferBlock own;
  bool sums = false; // in this phase
  int64_t ownPieces = 0, ownFinished = 0;
  bool spreadLater = false;
  std::vector<std::vector<char>> arrived; // [flow][piece], sums only
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_MPI_OPERATION_H

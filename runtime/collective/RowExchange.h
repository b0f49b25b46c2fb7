// SPDX-License-Identifier: Apache-2.0
//
// A ragged all-to-all: rows of experts of which only those that are filled
// travel. Both sides know how many these are, so that rows are messages of
// their own size, on any communicator.
#ifndef ROTA_RUNTIME_COLLECTIVE_ROWEXCHANGE_H
#define ROTA_RUNTIME_COLLECTIVE_ROWEXCHANGE_H

#include "runtime/GroupedAbi.h"
#include "runtime/collective/Communicator.h"

namespace rota {

/// One rank's part of rotaStartRowExchange (runtime/GroupedAbi.h). Refers to
/// its arguments.
class RowExchange {
public:
  /// `sent` and `received`: counts of the blocks of source and destination,
  /// each [blocks, form.experts].
  RowExchange(const RotaRowExchange &form, const RankGroup &group,
              const int32_t *sent, const int32_t *received)
      : form(form), group(group), sent(sent), received(received) {}

  /// Starts a message for each block with rows that goes to another rank or
  /// comes from one, and copies of the rank's own: in the order of ranks,
  /// sequences and blocks. Every rank of the group starts its part in the same
  /// order among the messages of `stream`.
  std::vector<Request> start(Communicator &communicator, Stream stream,
                             const void *source, void *destination) const;

  /// The blocks of source or destination.
  int64_t blocks() const {
    return static_cast<int64_t>(group.ranks.size()) * form.sequences *
           form.blocks;
  }
  /// Sets the rows of a block of the destination after its filled ones to
  /// zero. No transfer writes there.
  void clearBlock(int64_t block, void *destination) const;

private:
  int64_t number(bool dividesRows, int64_t peer, int64_t sequence,
                 int64_t block) const;
  int64_t filledBytes(const int32_t *counts, int64_t block) const;

  const RotaRowExchange &form;
  const RankGroup &group;
  const int32_t *sent, *received;
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_ROWEXCHANGE_H

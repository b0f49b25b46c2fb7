// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/RowExchange.h"

#include <algorithm>
#include <cstring>

namespace rota {

/// The number of a block that this rank shares with `peer` in the buffer of one
/// side: [sequences, ranks, blocks] where sequences are divided, and [ranks,
/// sequences, blocks] where rows are.
int64_t RowExchange::number(bool dividesRows, int64_t peer, int64_t sequence,
                            int64_t block) const {
  auto ranks = static_cast<int64_t>(group.ranks.size());
  int64_t row =
      dividesRows ? peer * form.sequences + sequence : sequence * ranks + peer;
  return row * form.blocks + block;
}

int64_t RowExchange::filledBytes(const int32_t *counts, int64_t block) const {
  const int32_t *own = counts + block * form.experts;
  int64_t rows = 0;
  for (int64_t expert = 0; expert < form.experts; ++expert)
    rows += own[expert];
  return std::clamp<int64_t>(rows, 0, form.rows) * form.rowBytes;
}

std::vector<Request> RowExchange::start(Communicator &communicator,
                                        Stream stream, const void *source,
                                        void *destination) const {
  bool fromRows = form.gathersRows != 0;
  int64_t room = form.rows * form.rowBytes;
  std::vector<Request> requests;
  auto add = [&](int64_t peer, int64_t sequence, int64_t block) {
    int64_t from = number(fromRows, peer, sequence, block);
    int64_t to = number(!fromRows, peer, sequence, block);
    const char *first = static_cast<const char *>(source) + from * room;
    char *place = static_cast<char *>(destination) + to * room;
    int64_t out = filledBytes(sent, from), in = filledBytes(received, to);
    int rank = group.ranks[static_cast<size_t>(peer)];
    if (peer == group.index) {
      if (in > 0)
        requests.push_back(communicator.copy(first, place, in));
      return;
    }
    if (out > 0)
      requests.push_back(communicator.send(stream, rank, first, out));
    if (in > 0)
      requests.push_back(communicator.receive(stream, rank, place, in));
  };
  for (size_t peer = 0; peer < group.ranks.size(); ++peer)
    for (int64_t sequence = 0; sequence < form.sequences; ++sequence)
      for (int64_t block = 0; block < form.blocks; ++block)
        add(static_cast<int64_t>(peer), sequence, block);
  return requests;
}

void RowExchange::clearBlock(int64_t block, void *destination) const {
  int64_t room = form.rows * form.rowBytes;
  int64_t filled = filledBytes(received, block);
  std::memset(static_cast<char *>(destination) + block * room + filled, 0,
              static_cast<size_t>(room - filled));
}

} // namespace rota

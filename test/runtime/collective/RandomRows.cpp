// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/collective/RandomRows.h"
#include "runtime/collective/RowExchange.h"
#include "test/runtime/collective/RandomCollective.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace rota::test {
namespace {

/// The bytes after the filled rows of a source, and in a destination before.
constexpr char kGarbage = 77;

/// The fill of the blocks of a group's ranks.
enum class Filling {
  OneBlock, // one has more than its room, or all of it; others nothing
  OneRank,  // so have all blocks of one rank
  Full,     // each has what its room can take, to the row
  Some,     // some have nothing
  Any
};

/// The rows of the ranks of a group: those of sequence s of the whole and block
/// p of the whole, counted by `countsOf`. A rank is its position in the group.
class Case {
public:
  Case(uint64_t seed, int64_t ranks, int64_t rowBytes)
      : random(seed), ranks(ranks) {
    form = {pick(1, 3), pick(1, 2),        pick(1, 5),
            pick(1, 3), pick(1, rowBytes), 0};
    filling = Filling(pick(0, 4));
    chosen = pick(0, blocks() - 1);
    for (int64_t block = 0; block < sequences() * blocks(); ++block)
      fill(block % blocks());
  }

  int64_t sequences() const { return ranks * form.sequences; }
  int64_t blocks() const { return ranks * form.blocks; }

  /// The counts of a rank in the order of its blocks.
  std::vector<int32_t> countsOf(int64_t rank, bool dividesRows) const {
    std::vector<int32_t> own;
    forEachBlock(rank, dividesRows, [&](int64_t sequence, int64_t block) {
      auto first =
          counts.begin() + (sequence * blocks() + block) * form.experts;
      own.insert(own.end(), first, first + form.experts);
    });
    return own;
  }

  /// The rows of a rank; `rest` stands behind those that are filled.
  std::vector<char> rowsOf(int64_t rank, bool dividesRows, char rest) const {
    std::vector<char> bytes;
    forEachBlock(rank, dividesRows, [&](int64_t sequence, int64_t block) {
      int64_t number = sequence * blocks() + block, filled = 0;
      for (int64_t x = 0; x < form.experts; ++x)
        filled += counts[size_t(number * form.experts + x)];
      for (int64_t i = 0; i < form.rows * form.rowBytes; ++i)
        bytes.push_back(i < filled * form.rowBytes
                            ? char((number * 31 + i * 7) % 64)
                            : rest);
    });
    return bytes;
  }

  RotaRowExchange form = {};

private:
  int64_t pick(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  }

  /// Appends the counts of block `block` of a sequence.
  void fill(int64_t block) {
    bool isChosen = filling == Filling::OneBlock
                        ? block == chosen
                        : block / form.blocks == chosen / form.blocks;
    bool isEmpty = filling == Filling::Some && pick(0, 1) == 0;
    int64_t left = form.rows;
    for (int64_t expert = 0; expert < form.experts; ++expert) {
      int64_t count = pick(0, form.rows);
      if (filling == Filling::OneBlock || filling == Filling::OneRank)
        count = isChosen ? form.rows : 0;
      if (filling == Filling::Full)
        left -= count = expert + 1 < form.experts ? pick(0, left) : left;
      counts.push_back(isEmpty ? 0 : int32_t(count));
    }
  }

  template <typename F>
  void forEachBlock(int64_t rank, bool dividesRows, F &&body) const {
    int64_t firstSequence = dividesRows ? 0 : rank * form.sequences;
    int64_t lastSequence =
        dividesRows ? sequences() : firstSequence + form.sequences;
    int64_t firstBlock = dividesRows ? rank * form.blocks : 0;
    int64_t lastBlock = dividesRows ? firstBlock + form.blocks : blocks();
    for (int64_t s = firstSequence; s < lastSequence; ++s)
      for (int64_t p = firstBlock; p < lastBlock; ++p)
        body(s, p);
  }

  std::mt19937_64 random;
  int64_t ranks;
  Filling filling;
  int64_t chosen;              // a block
  std::vector<int32_t> counts; // [sequences, blocks, experts] of the whole
};

/// The group of this rank along random axes of a mesh, in any order, or along
/// none.
RankGroup randomGroup(Communicator &communicator, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<MeshAxis> mesh = makeMesh(communicator.size());
  std::vector<int> axes(mesh.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::shuffle(axes.begin(), axes.end(), random);
  axes.resize(random() % 2 ? axes.size() : random() % (axes.size() + 1));
  return groupOf(mesh, communicator.rank(), axes);
}

void exchange(Communicator &communicator, const RankGroup &group,
              const RowsOfRank &rows) {
  std::vector<char> result(rows.expected.size(), kGarbage);
  RowExchange exchange(rows.form, group, rows.sent.data(),
                       rows.received.data());
  std::vector<Request> requests = exchange.start(
      communicator, Stream::Task, rows.source.data(), result.data());
  for (int64_t block = 0; block < exchange.blocks(); ++block)
    exchange.clearBlock(block, result.data());
  for (Request request : requests)
    communicator.wait(request);
  EXPECT_EQ(result, rows.expected);
}

} // namespace

RowsOfRank randomRows(uint64_t seed, int64_t rank, int64_t ranks,
                      int64_t rowBytes, bool gathersRows) {
  Case whole(seed, ranks, rowBytes);
  RowsOfRank rows{whole.form, whole.countsOf(rank, gathersRows),
                  whole.countsOf(rank, !gathersRows),
                  whole.rowsOf(rank, gathersRows, kGarbage),
                  whole.rowsOf(rank, !gathersRows, 0)};
  rows.form.gathersRows = gathersRows;
  return rows;
}

void exchangeRowsRandomly(Communicator &communicator, uint64_t seed, int count,
                          int64_t rowBytes) {
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(testing::Message() << "form " << i << " of seed " << seed);
    uint64_t own = seed * 1000 + uint64_t(i);
    RankGroup group = randomGroup(communicator, own);
    // Groups have other rows than each other.
    int first = *std::min_element(group.ranks.begin(), group.ranks.end());
    for (bool gathersRows : {false, true})
      exchange(communicator, group,
               randomRows(own + uint64_t(first) * 1000000, group.index,
                          int64_t(group.ranks.size()), rowBytes, gathersRows));
  }
}

} // namespace rota::test

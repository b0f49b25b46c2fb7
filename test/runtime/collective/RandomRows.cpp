// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/collective/RandomRows.h"
#include "runtime/collective/RowExchange.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace rota::test {
namespace {

/// What lies behind the filled rows of a source, and in a destination before.
constexpr char kGarbage = 77;

/// The rows of all ranks: those of sequence s of the whole and block p of the
/// whole, counted by `countsOf`.
class Case {
public:
  Case(uint64_t seed, int64_t ranks, int64_t rowBytes)
      : random(seed), ranks(ranks) {
    form = {pick(1, 3), pick(1, 2),        pick(1, 5),
            pick(1, 3), pick(1, rowBytes), 0};
    int64_t style = pick(0, 3); // 0: one block has all, 1: some have none
    int64_t chosen = pick(0, ranks * form.blocks - 1);
    counts.resize(size_t(sequences() * blocks() * form.experts));
    for (size_t i = 0; i < counts.size(); ++i) {
      int64_t block = int64_t(i) / form.experts % blocks();
      bool isEmpty =
          style == 0 ? block != chosen : style == 1 && pick(0, 1) == 0;
      counts[i] = isEmpty ? 0 : int32_t(pick(0, form.rows));
      if (style == 0 && block == chosen)
        counts[i] = int32_t(form.rows); // more than the room, where several
    }
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
  std::vector<int32_t> counts; // [sequences, blocks, experts] of the whole
};

void exchange(Communicator &communicator, const Case &test, bool gathersRows) {
  RotaRowExchange form = test.form;
  form.gathersRows = gathersRows;
  int rank = communicator.rank();
  RankGroup group;
  group.ranks.resize(size_t(communicator.size()));
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  group.index = rank;
  std::vector<int32_t> sent = test.countsOf(rank, gathersRows),
                       received = test.countsOf(rank, !gathersRows);
  std::vector<char> source = test.rowsOf(rank, gathersRows, kGarbage),
                    expected = test.rowsOf(rank, !gathersRows, 0);
  std::vector<char> result(expected.size(), kGarbage);
  RowExchange exchange(form, group, sent.data(), received.data());
  std::vector<Request> requests =
      exchange.start(communicator, Stream::Task, source.data(), result.data());
  for (int64_t block = 0; block < exchange.blocks(); ++block)
    exchange.clearBlock(block, result.data());
  for (Request request : requests)
    communicator.wait(request);
  EXPECT_EQ(result, expected);
}

} // namespace

void exchangeRowsRandomly(Communicator &communicator, uint64_t seed, int count,
                          int64_t rowBytes) {
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(testing::Message() << "form " << i << " of seed " << seed);
    Case test(seed * 1000 + uint64_t(i), communicator.size(), rowBytes);
    exchange(communicator, test, /*gathersRows=*/false);
    exchange(communicator, test, /*gathersRows=*/true);
  }
}

} // namespace rota::test

// SPDX-License-Identifier: Apache-2.0
//
// The elements that each member of a group sends to each other member in a
// collective, the same for every backend.
#ifndef ROTA_RUNTIME_COLLECTIVE_BLOCKS_H
#define ROTA_RUNTIME_COLLECTIVE_BLOCKS_H

#include "runtime/collective/Communicator.h"

#include <algorithm>

namespace rota {

/// Elements of a buffer: `rows` times `length` contiguous ones, `stride` apart.
/// They are counted row after row. All in elements.
struct TransferRows {
  int64_t offset = 0, rows = 0, length = 0, stride = 0;
  int64_t count() const { return rows * length; }
  /// True when the elements follow each other without gaps.
  bool isContiguous() const { return rows <= 1 || length == stride; }
};

/// The elements that one member sends to another: element i of `source`, in the
/// sender's buffer, becomes element i of `destination`, in the receiver's
/// buffer, or a term of its sum.
struct TransferBlock {
  TransferRows source, destination;
  int64_t count() const { return source.count(); }
};

/// True when receivers sum the elements, or take their maximum.
bool reduces(Collective::Kind kind);

/// The elements that member `from` sends to member `to`. An AllReduce has two
/// phases. In the first, `blockOf`, each member reduces its part of the
/// elements; in the second, `spreadBlock`, each sends its results to the
/// others, from destination to destination.
TransferBlock blockOf(const Collective &collective, const RankGroup &group,
                      int from, int to);
TransferBlock spreadBlock(const Collective &collective, const RankGroup &group,
                          int from, int to);

/// Elements of the buffers that each member of a group gives to a collective,
/// padding included.
int64_t sourceElements(const Collective &collective, const RankGroup &group);
int64_t destinationElements(const Collective &collective,
                            const RankGroup &group);

/// Padding after the member's part in the destination, which is set to zero;
/// without rows where there is none.
TransferRows paddingOf(const Collective &collective, const RankGroup &group,
                       int member);

/// Calls `body(source, destination, count)` for the contiguous stretches of the
/// block's elements [begin, end): offsets of the first element in each buffer.
template <typename F>
void forEachStretch(const TransferBlock &block, int64_t begin, int64_t end,
                    F &&body) {
  const TransferRows &s = block.source, &d = block.destination;
  for (int64_t i = begin; i < end;) {
    int64_t inSource = i % s.length, inDestination = i % d.length;
    int64_t count =
        std::min({end - i, s.length - inSource, d.length - inDestination});
    body(s.offset + i / s.length * s.stride + inSource,
         d.offset + i / d.length * d.stride + inDestination, count);
    i += count;
  }
}

/// Copies the block's elements [begin, end), each of `elementBytes`, unless
/// they are there.
void copyElements(const TransferBlock &block, int64_t begin, int64_t end,
                  int64_t elementBytes, const void *source, void *destination);
/// Sets all elements of `rows` to zero.
void clearElements(const TransferRows &rows, int64_t elementBytes,
                   void *buffer);

/// The arithmetic of ReduceScatter and AllReduce on `count` elements, of which
/// each member has a term: destination = terms[0] + terms[1] + ..., or their
/// maximum, element by element in this order. With `accumulate` the sum is
/// added to the destination. In f32, rounded once, to the nearest even; i32
/// wraps around. The destination may be one of the terms.
void combine(const Collective &collective,
             const std::vector<const void *> &terms, void *destination,
             int64_t count);

/// The collective in messages: "all-gather of [1, 64, 8] f32".
std::string describe(const Collective &collective);

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_BLOCKS_H

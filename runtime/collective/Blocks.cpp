// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/Blocks.h"

#include <cstring>
#include <fmt/format.h>

namespace rota {

namespace {

/// A tensor seen as [outer, size, inner] and cut into parts.
struct TensorCut {
  int64_t outer, size, inner, part;
  TensorCut(int64_t outer, int64_t size, int64_t inner, int64_t members)
      : outer(outer), size(size), inner(inner),
        part((size + members - 1) / members) {}
  int64_t count() const { return outer * size * inner; }
  int64_t partCount() const { return outer * part * inner; }
  /// Elements of the dimension in part i; the last parts may have fewer than
  /// `part`, or none.
  int64_t length(int64_t i) const {
    return std::clamp<int64_t>(size - i * part, 0, part);
  }
  TransferRows inWhole(int64_t i) const {
    return {i * part * inner, outer, length(i) * inner, size * inner};
  }
  TransferRows inPart(int64_t i) const {
    return {0, outer, length(i) * inner, part * inner};
  }
};

TensorCut cutOf(const Collective &c, const RankGroup &group) {
  return TensorCut(c.outer, c.size, c.inner,
                   static_cast<int64_t>(group.ranks.size()));
}

/// The member that receives the tensor of member `from`: its position along
/// `order` is the position of `from` along `axes`, counted from the end if it
/// is mirrored, plus the shift.
int permuted(const Collective &c, const RankGroup &group, int from) {
  size_t axes = c.axes.size();
  std::vector<int64_t> coordinate(axes, 0); // by place in `axes`
  auto ranks = static_cast<int64_t>(group.ranks.size());
  int64_t rest = ((c.mirrored ? ranks - 1 - from : from) + c.shift) % ranks;
  for (size_t i = axes; i-- > 0;) {
    size_t axis = static_cast<size_t>(
        std::find(c.axes.begin(), c.axes.end(), c.order[i]) - c.axes.begin());
    coordinate[axis] = rest % group.sizes[axis];
    rest /= group.sizes[axis];
  }
  int64_t to = 0;
  for (size_t axis = 0; axis < axes; ++axis)
    to = to * group.sizes[axis] + coordinate[axis];
  return static_cast<int>(to);
}

} // namespace

bool reduces(Collective::Kind kind) {
  return kind == Collective::Kind::ReduceScatter ||
         kind == Collective::Kind::AllReduce;
}

TransferBlock blockOf(const Collective &c, const RankGroup &group, int from,
                      int to) {
  TensorCut cut = cutOf(c, group);
  switch (c.kind) {
  case Collective::Kind::AllGather:
    return {cut.inPart(from), cut.inWhole(from)};
  case Collective::Kind::ReduceScatter:
    return {cut.inWhole(to), cut.inPart(to)};
  case Collective::Kind::AllReduce:
    return {cut.inWhole(to), cut.inWhole(to)};
  case Collective::Kind::AllToAll: {
    TensorCut split(c.splitOuter, c.splitSize, c.splitInner,
                    static_cast<int64_t>(group.ranks.size()));
    return {split.inWhole(to), cut.inWhole(from)};
  }
  case Collective::Kind::Slice:
    return from == to ? TransferBlock{cut.inWhole(to), cut.inPart(to)}
                      : TransferBlock();
  case Collective::Kind::Permute: {
    TransferRows whole = {0, 1, c.outer * c.size * c.inner, 0};
    return permuted(c, group, from) == to ? TransferBlock{whole, whole}
                                          : TransferBlock();
  }
  }
  return {};
}

TransferBlock spreadBlock(const Collective &c, const RankGroup &group, int from,
                          int to) {
  TransferRows part = cutOf(c, group).inWhole(from);
  return from == to ? TransferBlock() : TransferBlock{part, part};
}

int64_t sourceElements(const Collective &c, const RankGroup &group) {
  if (c.kind == Collective::Kind::AllToAll)
    return c.splitOuter * c.splitSize * c.splitInner;
  TensorCut cut = cutOf(c, group);
  return c.kind == Collective::Kind::AllGather ? cut.partCount() : cut.count();
}

int64_t destinationElements(const Collective &c, const RankGroup &group) {
  bool isPart = c.kind == Collective::Kind::ReduceScatter ||
                c.kind == Collective::Kind::Slice;
  TensorCut cut = cutOf(c, group);
  return isPart ? cut.partCount() : cut.count();
}

TransferRows paddingOf(const Collective &c, const RankGroup &group,
                       int member) {
  bool hasPart = c.kind == Collective::Kind::Slice ||
                 (c.kind == Collective::Kind::ReduceScatter && !c.accumulate);
  TensorCut cut = cutOf(c, group);
  int64_t length = cut.length(member);
  if (!hasPart || length == cut.part)
    return {};
  return {length * c.inner, c.outer, (cut.part - length) * c.inner,
          cut.part * c.inner};
}

void copyElements(const TransferBlock &block, int64_t begin, int64_t end,
                  int64_t elementBytes, const void *source, void *destination) {
  forEachStretch(block, begin, end, [&](int64_t from, int64_t to, int64_t n) {
    char *target = static_cast<char *>(destination) + to * elementBytes;
    const char *origin =
        static_cast<const char *>(source) + from * elementBytes;
    if (target != origin) // a part that is in its whole
      std::memcpy(target, origin, static_cast<size_t>(n * elementBytes));
  });
}

void clearElements(const TransferRows &rows, int64_t elementBytes,
                   void *buffer) {
  for (int64_t row = 0; row < rows.rows; ++row)
    std::memset(static_cast<char *>(buffer) +
                    (rows.offset + row * rows.stride) * elementBytes,
                0, static_cast<size_t>(rows.length * elementBytes));
}

std::string describe(const Collective &c) {
  static constexpr const char *kTypes[] = {"f32", "bf16", "i32"};
  return fmt::format("{} of [{}, {}, {}] {}", kCollectiveNames[int(c.kind)],
                     c.outer, c.size, c.inner, kTypes[int(c.type)]);
}

} // namespace rota

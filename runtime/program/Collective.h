// SPDX-License-Identifier: Apache-2.0
//
// Transfers among ranks, as a program describes them.
#ifndef ROTA_RUNTIME_PROGRAM_COLLECTIVE_H
#define ROTA_RUNTIME_PROGRAM_COLLECTIVE_H

#include "runtime/program/ElementType.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rota {

/// A transfer among the ranks that differ along `axes` only, its group, ordered
/// by their coordinates with the first of `axes` slowest. Without axes the
/// group is the rank alone, and the collective a copy or an addition.
///
/// The whole tensor is seen as [outer, size, inner] elements, row-major; its
/// part i is [outer, p, inner] with p = ceil(size / ranks of the group).
struct Collective {
  enum class Kind {
    AllGather,     // part -> whole
    ReduceScatter, // whole -> part of the sum
    AllReduce,     // whole -> sum or maximum; outer = inner = 1
    AllToAll,      // see `split`
    Slice,         // whole -> own part; nothing travels
    Permute,       // see `order`; outer = inner = 1
  };
  Kind kind = Kind::AllGather;
  std::vector<int> axes;
  ElementType type = ElementType::F32;
  int64_t outer = 1, size = 1, inner = 1;
  // AllToAll: the output's [outer, size, inner] is gathered from the group
  // while the input's [splitOuter, splitSize, splitInner] is cut: member i
  // sends part j of its input to member j as part i of the output there. The
  // group's ranks divide both sizes.
  int64_t splitOuter = 1, splitSize = 1, splitInner = 1;
  // Permute: the same axes in another order. The member with coordinates x
  // (along `axes`) gives its tensor to the member whose position, counted with
  // `order` major first, is the position of x counted with `axes`, plus `shift`
  // modulo the members. If it is mirrored, the position of x is counted from
  // the end: n - 1 - p of n.
  std::vector<int> order;
  int64_t shift = 0;     // Permute
  bool mirrored = false; // Permute
  bool maximum = false;  // AllReduce
  // ReduceScatter: adds to the destination instead of overwriting it.
  bool accumulate = false;
  std::string reason; // for people: "gathers 'self_attn.q_proj.weight'"
  bool operator==(const Collective &) const = default;
};

/// Names of the kinds, for people.
inline constexpr const char *kCollectiveNames[] = {
    "all-gather", "reduce-scatter", "all-reduce",
    "all-to-all", "slice",          "permute"};

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_COLLECTIVE_H

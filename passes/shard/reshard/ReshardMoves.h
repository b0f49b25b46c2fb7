// SPDX-License-Identifier: Apache-2.0
//
// The moves between layouts: one collective each.
#ifndef ROTA_PASSES_SHARD_RESHARD_RESHARDMOVES_H
#define ROTA_PASSES_SHARD_RESHARD_RESHARDMOVES_H

#include "passes/shard/reshard/AxisAtoms.h"
#include "passes/shard/reshard/ReshardPlanner.h"

#include <vector>

namespace mlir::rota {

/// A collective and the layout of its result.
struct ReshardMove {
  CollectiveKind kind;
  AtomList axes;
  AtomList order; // Permute
  int64_t dim = -1, split = -1;
  AxisLayout result;
  ReshardCost cost;
  bool isRagged = false; // AllToAll
};

/// The moves of one reshard.
class ReshardMoves {
public:
  ReshardMoves(RankedTensorType whole, const AxisAtoms &atoms,
               const AxisLayout &from, const AxisLayout &to,
               std::optional<double> fill);

  /// All moves from `layout`, always in the same order; with `direct`, only
  /// those that add to a dimension no axis that the goal does not have there.
  std::vector<ReshardMove> from(const AxisLayout &layout, bool direct) const;

  /// One slice or permutation that replaces several in a row.
  ReshardMove slice(const AxisLayout &layout, int64_t dim,
                    ArrayRef<Atom> axes) const;
  ReshardMove permute(const AxisLayout &layout, const AxisLayout &result) const;

  /// The shape of one rank's part.
  SmallVector<int64_t> shapeOf(const AxisLayout &layout) const;

private:
  using Moves = std::vector<ReshardMove>;
  void addGathers(const AxisLayout &layout, Moves &moves) const;
  void addSlices(const AxisLayout &layout, Moves &moves) const;
  void addAllToAlls(const AxisLayout &layout, Moves &moves) const;
  void addReduceScatters(const AxisLayout &layout, Moves &moves) const;
  void addAllReduces(const AxisLayout &layout, Moves &moves) const;
  void addPermutes(const AxisLayout &layout, Moves &moves) const;
  void addReorders(const AxisLayout &layout, int64_t dim, Moves &moves) const;
  void addExchanges(const AxisLayout &layout, Moves &moves) const;

  int64_t rank() const { return whole.getRank(); }
  /// Size of a rank's part of dimension `dim`.
  int64_t partSize(const AxisLayout &layout, int64_t dim) const;
  int64_t bytesOf(const AxisLayout &layout) const;
  /// True when cutting each part under `layout` into those under `cut` gives
  /// the parts that the whole has under `cut`.
  bool cutsEvenly(const AxisLayout &layout, const AxisLayout &cut,
                  int64_t dim) const;
  bool isDirect(const AxisLayout &layout, const ReshardMove &move) const;
  /// True when counts divided as in `begin` and in the goal are those of the
  /// rows before and after the move from `layout` to `result`.
  bool movesRows(const AxisLayout &layout, const AxisLayout &result) const;
  /// True when the atom divides no dimension and is not summed over.
  bool isUnused(const AxisLayout &layout, Atom atom) const;
  bool isWanted(Atom atom) const { return llvm::is_contained(wanted, atom); }
  bool anyWanted(ArrayRef<Atom> atoms) const {
    return llvm::any_of(atoms, [&](Atom atom) { return isWanted(atom); });
  }
  /// The next atoms of `to` on `dim`; none when `layout` has others before
  /// them.
  ArrayRef<Atom> wantedNext(const AxisLayout &layout, int64_t dim) const;

  RankedTensorType whole;
  const AxisAtoms &atoms;
  const AxisLayout &begin, &to;
  std::optional<double> fill;   // fill of counted rows
  AtomList wanted;              // all that divide a dimension in `to`
  SmallVector<size_t, 4> fixed; // per dimension, foremost atoms that stay
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_RESHARD_RESHARDMOVES_H

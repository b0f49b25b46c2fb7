// SPDX-License-Identifier: Apache-2.0
//
// The moves between layouts: what one collective can do.
#ifndef ROTA_PASSES_SHARD_RESHARDMOVES_H
#define ROTA_PASSES_SHARD_RESHARDMOVES_H

#include "passes/shard/AxisAtoms.h"
#include "passes/shard/ReshardPlanner.h"

#include <vector>

namespace mlir::rota {

/// A collective and the layout that it leaves.
struct ReshardMove {
  ReshardStep::Kind kind;
  AtomList axes;
  AtomList order; // Permute
  int64_t dim = -1, split = -1;
  Layout result;
  ReshardCost cost;
};

/// The moves of one question.
class ReshardMoves {
public:
  ReshardMoves(RankedTensorType whole, const AxisAtoms &atoms,
               const Layout &from, const Layout &to);

  /// All moves from `layout`, always in the same order; with `direct`, only
  /// those that put nothing on a dimension but what the goal has there.
  std::vector<ReshardMove> from(const Layout &layout, bool direct) const;

  /// The one slice or permutation that does what several in a row did.
  ReshardMove slice(const Layout &layout, int64_t dim,
                    ArrayRef<Atom> axes) const;
  ReshardMove permute(const Layout &layout, const Layout &result) const;

  /// The shape of one rank's part.
  SmallVector<int64_t> shapeOf(const Layout &layout) const;

private:
  using Moves = std::vector<ReshardMove>;
  void addGathers(const Layout &layout, Moves &moves) const;
  void addSlices(const Layout &layout, Moves &moves) const;
  void addAllToAlls(const Layout &layout, Moves &moves) const;
  void addReduceScatters(const Layout &layout, Moves &moves) const;
  void addAllReduces(const Layout &layout, Moves &moves) const;
  void addPermutes(const Layout &layout, Moves &moves) const;
  void addReorders(const Layout &layout, int64_t dim, Moves &moves) const;
  void addExchanges(const Layout &layout, Moves &moves) const;

  int64_t rank() const { return whole.getRank(); }
  /// Size of a rank's part of dimension `dim`.
  int64_t partSize(const Layout &layout, int64_t dim) const;
  int64_t bytesOf(const Layout &layout) const;
  /// True when cutting each part under `layout` into those under `cut` gives
  /// the parts that the whole has under `cut`.
  bool cutsEvenly(const Layout &layout, const Layout &cut, int64_t dim) const;
  bool isDirect(const Layout &layout, const ReshardMove &move) const;
  /// True when the atom divides no dimension and is not summed over.
  bool isUnused(const Layout &layout, Atom atom) const;
  bool isWanted(Atom atom) const { return llvm::is_contained(wanted, atom); }
  bool anyWanted(ArrayRef<Atom> atoms) const {
    return llvm::any_of(atoms, [&](Atom atom) { return isWanted(atom); });
  }
  /// The atoms that `to` wants next on `dim`; none when `layout` has others in
  /// front.
  ArrayRef<Atom> wantedNext(const Layout &layout, int64_t dim) const;

  RankedTensorType whole;
  const AxisAtoms &atoms;
  const Layout &to;
  AtomList wanted;              // all that divide a dimension in `to`
  SmallVector<size_t, 4> fixed; // per dimension, foremost atoms that stay
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_RESHARDMOVES_H

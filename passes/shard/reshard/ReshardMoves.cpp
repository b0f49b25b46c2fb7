// SPDX-License-Identifier: Apache-2.0
//
// Lists the layouts that one collective can reach. Moves of axes that are not
// in the goal cannot be part of a cheapest plan and are left out.
#include "passes/shard/reshard/ReshardMoves.h"
#include "ir/rota/cost/Traffic.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::rota;

using Kind = CollectiveKind;

/// More axes than this in one dimension, or more unreduced ones, are not tried
/// in every order.
static constexpr size_t kMaxOrdered = 4;

ReshardMoves::ReshardMoves(RankedTensorType whole, const AxisAtoms &atoms,
                           const AxisLayout &from, const AxisLayout &to,
                           std::optional<double> fill)
    : whole(whole), atoms(atoms), begin(from), to(to), fill(fill),
      wanted(to.dividing()) {
  for (auto [size, a, b] :
       llvm::zip_equal(whole.getShape(), from.dimensions, to.dimensions)) {
    size_t common = 0;
    // Uneven parts may have to be gathered in one collective.
    if (size % atoms.size(a) == 0 && size % atoms.size(b) == 0)
      while (common < std::min(a.size(), b.size()) && a[common] == b[common])
        ++common;
    fixed.push_back(common);
  }
}

std::vector<ReshardMove> ReshardMoves::from(const AxisLayout &layout,
                                            bool direct) const {
  Moves moves;
  addSlices(layout, moves);
  addReduceScatters(layout, moves);
  addAllToAlls(layout, moves);
  addPermutes(layout, moves);
  addAllReduces(layout, moves);
  addGathers(layout, moves);
  if (direct)
    llvm::erase_if(moves, [&](const ReshardMove &move) {
      return !isDirect(layout, move);
    });
  return moves;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

int64_t ReshardMoves::partSize(const AxisLayout &layout, int64_t dim) const {
  return llvm::divideCeil(whole.getDimSize(dim),
                          atoms.size(layout.dimensions[dim]));
}

SmallVector<int64_t> ReshardMoves::shapeOf(const AxisLayout &layout) const {
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < rank(); ++dim)
    shape.push_back(partSize(layout, dim));
  return shape;
}

int64_t ReshardMoves::bytesOf(const AxisLayout &layout) const {
  int64_t bytes = llvm::divideCeil(whole.getElementTypeBitWidth(), 8);
  for (int64_t size : shapeOf(layout))
    bytes *= size;
  return bytes;
}

bool ReshardMoves::cutsEvenly(const AxisLayout &layout, const AxisLayout &cut,
                              int64_t dim) const {
  int64_t parts = atoms.size(layout.dimensions[dim]);
  int64_t pieces = atoms.size(cut.dimensions[dim]) / parts;
  return parts == 1 || partSize(layout, dim) == pieces * partSize(cut, dim);
}

bool ReshardMoves::isUnused(const AxisLayout &layout, Atom atom) const {
  return !llvm::is_contained(layout.unreduced, atom) &&
         llvm::none_of(layout.dimensions, [&](const AtomList &dimension) {
           return llvm::is_contained(dimension, atom);
         });
}

bool ReshardMoves::isDirect(const AxisLayout &layout,
                            const ReshardMove &move) const {
  for (auto [before, after, goal] : llvm::zip_equal(
           layout.dimensions, move.result.dimensions, to.dimensions)) {
    auto begins = [](ArrayRef<Atom> list, ArrayRef<Atom> with) {
      return with.size() <= list.size() && list.take_front(with.size()) == with;
    };
    if (!begins(before, after) && !begins(goal, after))
      return false;
  }
  return true;
}

bool ReshardMoves::movesRows(const AxisLayout &layout,
                             const AxisLayout &result) const {
  auto same = [](const AxisLayout &a, const AxisLayout &b) {
    return a.dimensions[0] == b.dimensions[0] &&
           a.dimensions[1] == b.dimensions[1];
  };
  return same(layout, begin) && same(result, to);
}

ArrayRef<Atom> ReshardMoves::wantedNext(const AxisLayout &layout,
                                        int64_t dim) const {
  ArrayRef<Atom> has = layout.dimensions[dim], goal = to.dimensions[dim];
  if (has.size() >= goal.size() || goal.take_front(has.size()) != has)
    return {};
  return goal.drop_front(has.size());
}

//===----------------------------------------------------------------------===//
// Slicing and gathering
//===----------------------------------------------------------------------===//

void ReshardMoves::addGathers(const AxisLayout &layout, Moves &moves) const {
  for (int64_t dim = 0; dim < rank(); ++dim) {
    ArrayRef<Atom> has = layout.dimensions[dim];
    for (size_t count = 1; count + fixed[dim] <= has.size(); ++count) {
      ReshardMove move{Kind::AllGather,
                       AtomList(has.take_back(count)),
                       {},
                       dim,
                       -1,
                       layout,
                       {}};
      move.result.dimensions[dim].truncate(has.size() - count);
      if (!cutsEvenly(move.result, layout, dim))
        continue;
      move.cost = {traffic::allGather(bytesOf(layout), atoms.size(move.axes)),
                   1, 1};
      moves.push_back(move);
    }
  }
}

ReshardMove ReshardMoves::slice(const AxisLayout &layout, int64_t dim,
                                ArrayRef<Atom> axes) const {
  ReshardMove move{Kind::Slice, AtomList(axes), {}, dim, -1, layout, {0, 0, 1}};
  llvm::append_range(move.result.dimensions[dim], axes);
  return move;
}

void ReshardMoves::addSlices(const AxisLayout &layout, Moves &moves) const {
  auto add = [&](int64_t dim, ArrayRef<Atom> axes) {
    ReshardMove move = slice(layout, dim, axes);
    if (cutsEvenly(layout, move.result, dim))
      moves.push_back(move);
  };
  for (int64_t dim = 0; dim < rank(); ++dim) {
    // Runs of axes that the goal has on this dimension, and single axes that it
    // has on any.
    ArrayRef<Atom> next = wantedNext(layout, dim);
    for (size_t count = 1;
         count <= next.size() && isUnused(layout, next[count - 1]); ++count)
      if (count > 1)
        add(dim, next.take_front(count));
    for (Atom atom : wanted)
      if (isUnused(layout, atom))
        add(dim, atom);
  }
}

void ReshardMoves::addAllToAlls(const AxisLayout &layout, Moves &moves) const {
  for (int64_t dim = 0; dim < rank(); ++dim)
    for (size_t count = 1; count + fixed[dim] <= layout.dimensions[dim].size();
         ++count) {
      AtomList axes(ArrayRef(layout.dimensions[dim]).take_back(count));
      int64_t ranks = atoms.size(axes);
      if (!anyWanted(axes))
        continue;
      for (int64_t split = 0; split < rank(); ++split) {
        if (split == dim || partSize(layout, split) % ranks != 0)
          continue;
        ReshardMove move{Kind::AllToAll, axes, {}, dim, split, layout, {}};
        AtomList &gathered = move.result.dimensions[dim];
        gathered.truncate(gathered.size() - count);
        llvm::append_range(move.result.dimensions[split], axes);
        if (partSize(move.result, dim) != partSize(layout, dim) * ranks)
          continue;
        int64_t bytes = traffic::allToAll(bytesOf(layout), ranks);
        move.isRagged =
            fill && dim + split == 1 && movesRows(layout, move.result);
        if (move.isRagged)
          bytes = traffic::filled(bytes, *fill);
        move.cost = {bytes, 1, 1};
        moves.push_back(move);
      }
    }
}

//===----------------------------------------------------------------------===//
// Reducing
//===----------------------------------------------------------------------===//

/// Calls `use` with every non-empty list of some of `from`, in every order when
/// `ordered`.
static void forEachList(ArrayRef<Atom> from, bool ordered,
                        function_ref<void(ArrayRef<Atom>)> use,
                        AtomList chosen = {}) {
  for (auto [index, atom] : llvm::enumerate(from)) {
    AtomList list = chosen;
    list.push_back(atom);
    use(list);
    AtomList rest(ordered ? from.take_front(index) : ArrayRef<Atom>());
    llvm::append_range(rest, from.drop_front(index + 1));
    forEachList(rest, ordered, use, list);
  }
}

/// `layout`, no longer a sum over `axes`.
static AxisLayout reduced(AxisLayout layout, ArrayRef<Atom> axes) {
  llvm::erase_if(layout.unreduced,
                 [&](Atom atom) { return llvm::is_contained(axes, atom); });
  return layout;
}

void ReshardMoves::addReduceScatters(const AxisLayout &layout,
                                     Moves &moves) const {
  AtomList candidates;
  llvm::copy_if(layout.unreduced, std::back_inserter(candidates),
                [&](Atom atom) { return isWanted(atom); });
  for (int64_t dim = 0; dim < rank(); ++dim) {
    auto add = [&](ArrayRef<Atom> axes) {
      ReshardMove move{Kind::ReduceScatter,
                       AtomList(axes),
                       {},
                       dim,
                       -1,
                       reduced(layout, axes),
                       {}};
      llvm::append_range(move.result.dimensions[dim], axes);
      if (!cutsEvenly(layout, move.result, dim))
        return;
      move.cost = {
          traffic::reduceScatter(bytesOf(move.result), atoms.size(axes)), 1, 1};
      moves.push_back(move);
    };
    if (candidates.size() <= kMaxOrdered) {
      forEachList(candidates, /*ordered=*/true, add);
      continue;
    }
    ArrayRef<Atom> next = wantedNext(layout, dim);
    for (size_t count = 1; count <= next.size() &&
                           llvm::is_contained(candidates, next[count - 1]);
         ++count)
      add(next.take_front(count));
  }
}

void ReshardMoves::addAllReduces(const AxisLayout &layout, Moves &moves) const {
  // Axes that no dimension of the goal has are reduced at once; the others may
  // be scattered.
  AtomList always, sometimes;
  for (Atom atom : layout.unreduced)
    if (isWanted(atom))
      sometimes.push_back(atom);
    else if (!llvm::is_contained(to.unreduced, atom))
      always.push_back(atom);
  auto add = [&](ArrayRef<Atom> more) {
    AtomList axes = always;
    llvm::append_range(axes, more);
    if (axes.empty())
      return;
    llvm::sort(axes);
    ReshardMove move{Kind::AllReduce,       axes, {}, -1, -1,
                     reduced(layout, axes), {}};
    move.cost = {traffic::allReduce(bytesOf(layout), atoms.size(axes)), 1, 1};
    moves.push_back(move);
  };
  add({});
  if (sometimes.size() <= kMaxOrdered)
    forEachList(sometimes, /*ordered=*/false, add);
  else
    add(sometimes);
}

//===----------------------------------------------------------------------===//
// Permuting
//===----------------------------------------------------------------------===//

ReshardMove ReshardMoves::permute(const AxisLayout &layout,
                                  const AxisLayout &result) const {
  ReshardMove move{Kind::Permute,
                   {},
                   {},
                   -1,
                   -1,
                   result,
                   {traffic::permute(bytesOf(layout)), 1, 1}};
  // Axes that are first or last in a dimension both before and after keep their
  // weight in a part's number: the coordinates along them do not change.
  for (auto [before, after] :
       llvm::zip_equal(layout.dimensions, result.dimensions)) {
    ArrayRef<Atom> a = before, b = after;
    while (!a.empty() && !b.empty() && a.front() == b.front()) {
      a = a.drop_front();
      b = b.drop_front();
    }
    while (!a.empty() && !b.empty() && a.back() == b.back()) {
      a = a.drop_back();
      b = b.drop_back();
    }
    llvm::append_range(move.axes, a);
    llvm::append_range(move.order, b);
  }
  // Axes along which the value is the same number its copies; they come after
  // the axes of its parts.
  AtomList before = move.axes, after = move.order;
  for (Atom atom : after)
    if (!llvm::is_contained(before, atom))
      move.axes.push_back(atom);
  for (Atom atom : before)
    if (!llvm::is_contained(after, atom))
      move.order.push_back(atom);
  return move;
}

/// Every other order of the movable atoms of `dim`, if the goal has some of
/// them.
void ReshardMoves::addReorders(const AxisLayout &layout, int64_t dim,
                               Moves &moves) const {
  const AtomList &has = layout.dimensions[dim];
  ArrayRef<Atom> movable = ArrayRef(has).drop_front(fixed[dim]);
  if (movable.size() < 2 || movable.size() > kMaxOrdered || !anyWanted(movable))
    return;
  AtomList order(movable);
  llvm::sort(order);
  do {
    if (ArrayRef<Atom>(order) == movable)
      continue;
    AxisLayout result = layout;
    llvm::copy(order, result.dimensions[dim].begin() + fixed[dim]);
    moves.push_back(permute(layout, result));
  } while (std::next_permutation(order.begin(), order.end()));
}

/// Exchanges two atoms of one size, or replaces an atom by one along which the
/// value is the same.
void ReshardMoves::addExchanges(const AxisLayout &layout, Moves &moves) const {
  struct Place {
    int64_t dim;
    size_t index;
  };
  SmallVector<Place> places;
  for (int64_t dim = 0; dim < rank(); ++dim)
    for (size_t index = fixed[dim]; index < layout.dimensions[dim].size();
         ++index)
      places.push_back({dim, index});
  for (auto [number, place] : llvm::enumerate(places)) {
    Atom atom = layout.dimensions[place.dim][place.index];
    for (Place other : ArrayRef(places).drop_front(number + 1)) {
      Atom second = layout.dimensions[other.dim][other.index];
      if (place.dim == other.dim || atoms.size(atom) != atoms.size(second) ||
          !anyWanted({atom, second}))
        continue;
      AxisLayout result = layout;
      std::swap(result.dimensions[place.dim][place.index],
                result.dimensions[other.dim][other.index]);
      moves.push_back(permute(layout, result));
    }
    for (Atom second : wanted) {
      if (atoms.size(atom) != atoms.size(second) || !isUnused(layout, second))
        continue;
      AxisLayout result = layout;
      result.dimensions[place.dim][place.index] = second;
      moves.push_back(permute(layout, result));
    }
  }
}

void ReshardMoves::addPermutes(const AxisLayout &layout, Moves &moves) const {
  for (int64_t dim = 0; dim < rank(); ++dim)
    addReorders(layout, dim, moves);
  addExchanges(layout, moves);
  // One permutation to the goal, if that divides every dimension into as many
  // parts.
  bool sameParts = layout.unreduced == to.unreduced && !(layout == to);
  for (auto [a, b] : llvm::zip_equal(layout.dimensions, to.dimensions))
    sameParts &= atoms.size(a) == atoms.size(b);
  if (sameParts)
    moves.push_back(permute(layout, to));
}

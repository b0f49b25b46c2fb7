// SPDX-License-Identifier: Apache-2.0
//
// Groups nodes into kernels.
#include "lowering/kernels/rows/Fusion.h"

#include <set>

using namespace mlir;
using mlir::rota::ViewOpInterface;

namespace rota::lowering {

Fusion::Fusion(Block &block) : nodes(block) {
  do
    form(block);
  while (repeatAcrossGroups());
}

void Fusion::form(Block &block) {
  ops.clear();
  numbers.clear();
  users.clear();
  unitOf.clear();
  units.clear();
  readers.clear();
  addUnits(block);
  Operation *lastEffect = nullptr;
  for (Operation *op : ops) {
    addEdges(op);
    // Ops with effects keep their order.
    if (isMemoryEffectFree(op))
      continue;
    if (lastEffect)
      addEdge(lastEffect, op, /*fusable=*/false);
    lastEffect = op;
  }
  findDepths();
  while (groupAlongEdges() || groupReaders())
    ;
}

/// Repeats values in the groups that use them instead of storing them, where
/// only groups use them and that moves fewer bytes. Returns whether there were
/// any.
bool Fusion::repeatAcrossGroups() {
  SmallVector<Operation *> worth;
  for (Operation *op : ops)
    if (nodes.lookup(op) && isWorthRepeating(op))
      worth.push_back(op);
  bool changed = false;
  for (Operation *op : worth)
    changed |= nodes.tryRepeat(op);
  return changed;
}

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

bool Fusion::isWorthRepeating(Operation *op) const {
  Value result = op->getResult(0);
  if (!nodes.lookup(op)->isRow || nodes.isNeededByStaying(result) ||
      !neededBeyond(result, units[unitOf[numbers.lookup(op)]]))
    return false;
  llvm::SmallSetVector<Value, 8> inputs;
  int operations = 0;
  if (!collectStoredInputs(op, inputs, operations))
    return false;
  int64_t bytes = 0;
  for (Value input : inputs)
    bytes += bytesOf(input);
  return bytes <= 2 * bytesOf(result);
}

/// Collects the stored rows from which `op` can be computed again; false when
/// that takes a reduction or too much arithmetic.
bool Fusion::collectStoredInputs(Operation *op,
                                 llvm::SmallSetVector<Value, 8> &inputs,
                                 int &operations) const {
  constexpr int kOperations = 24;
  const FusionNodes::Node &node = *nodes.lookup(op);
  if (node.form || !node.isRow || ++operations > kOperations)
    return false;
  for (const Access &access : nodes.accesses(op)) {
    Operation *producer = access.value.getDefiningOp();
    if (!access.isRow)
      continue;
    if (!producer || !nodes.lookup(producer) ||
        nodes.isNeededByStaying(access.value))
      inputs.insert(access.value);
    else if (!collectStoredInputs(producer, inputs, operations))
      return false;
  }
  return true;
}

void Fusion::addUnits(Block &block) {
  for (Operation &op : block.without_terminator()) {
    const FusionNodes::Node *node = nodes.lookup(&op);
    if (!node && nodes.isRepeated(&op))
      continue;
    unsigned number = ops.size();
    numbers[&op] = number;
    ops.push_back(&op);
    unitOf.push_back(number);
    units.push_back(
        {{number}, node != nullptr, node ? node->space : RowSpace()});
  }
  users.resize(ops.size());
}

void Fusion::addEdges(Operation *op) {
  const FusionNodes::Node *node = nodes.lookup(op);
  if (!node) {
    for (Value operand : op->getOperands())
      addEdge(operand.getDefiningOp(), op, /*fusable=*/false);
    return;
  }
  for (const Access &access : nodes.accesses(op)) {
    Operation *producer = access.value.getDefiningOp();
    bool ownRow = access.map.isIdentity();
    if (ownRow && access.isRow)
      readers[access.value].push_back(numbers.lookup(op));
    const FusionNodes::Node *other =
        producer ? nodes.lookup(producer) : nullptr;
    addEdge(producer, op,
            other && ownRow && other->isRow == access.isRow && !other->isSum());
  }
}

void Fusion::addEdge(Operation *producer, Operation *consumer, bool fusable) {
  if (auto found = numbers.find(producer); producer && found != numbers.end())
    users[found->second].push_back({numbers.lookup(consumer), fusable});
}

bool Fusion::groupAlongEdges() {
  bool changed = false;
  for (unsigned from = 0; from < ops.size(); ++from)
    for (Edge edge : users[from])
      if (edge.fusable)
        changed |= tryMerge(unitOf[from], unitOf[edge.to]);
  return changed;
}

/// Merges groups that read the same rows, and constants with any group.
bool Fusion::groupReaders() {
  bool changed = false;
  for (auto &[value, numbersOfReaders] : readers)
    for (unsigned first : numbersOfReaders)
      for (unsigned second : numbersOfReaders)
        changed |= tryMerge(unitOf[first], unitOf[second]);
  for (unsigned number = 0; number < ops.size(); ++number)
    if (nodes.lookup(ops[number]) && isa<arith::ConstantOp>(ops[number]))
      for (unsigned other = 0; other < ops.size(); ++other)
        if (units[unitOf[other]].isGroup)
          changed |= tryMerge(unitOf[number], unitOf[other]);
  return changed;
}

/// Whether both work on the same rows and exchange values row by row alone.
bool Fusion::canShareKernel(const Unit &a, const Unit &b) const {
  if (!a.isGroup || !b.isGroup || a.space.rows != b.space.rows)
    return false;
  if (a.space.columns != b.space.columns && a.space.columns != 0 &&
      b.space.columns != 0)
    return false;
  auto exchangesWholes = [&](const Unit &from, const Unit &to) {
    unsigned target = unitOf[to.ops.front()];
    return llvm::any_of(from.ops, [&](unsigned op) {
      return llvm::any_of(users[op], [&](Edge edge) {
        return unitOf[edge.to] == target && !edge.fusable;
      });
    });
  };
  return !exchangesWholes(a, b) && !exchangesWholes(b, a);
}

/// Gives each unit a depth that is larger than those of all units that it
/// needs.
void Fusion::findDepths() {
  std::vector<unsigned> waits(units.size());
  auto forEachUser = [&](unsigned unit, auto visit) {
    for (unsigned op : units[unit].ops)
      for (Edge edge : users[op])
        if (unitOf[edge.to] != unit)
          visit(unitOf[edge.to]);
  };
  for (unsigned unit = 0; unit < units.size(); ++unit)
    forEachUser(unit, [&](unsigned user) { ++waits[user]; });
  SmallVector<unsigned> ready;
  for (unsigned unit = 0; unit < units.size(); ++unit)
    if (waits[unit] == 0)
      ready.push_back(unit);
  depths.assign(units.size(), 0);
  while (!ready.empty()) {
    unsigned unit = ready.pop_back_val();
    forEachUser(unit, [&](unsigned user) {
      depths[user] = std::max(depths[user], depths[unit] + 1);
      if (--waits[user] == 0)
        ready.push_back(user);
    });
  }
}

/// Whether unit `from` reaches unit `to` through a third one, all of which are
/// less deep than `to`.
bool Fusion::hasDetour(unsigned from, unsigned to) {
  if (depths[from] >= depths[to])
    return false;
  visited.resize(units.size(), 0);
  ++searches;
  SmallVector<unsigned> open = {from};
  while (!open.empty()) {
    unsigned unit = open.pop_back_val();
    for (unsigned op : units[unit].ops)
      for (Edge edge : users[op]) {
        unsigned next = unitOf[edge.to];
        if (next == to && unit != from)
          return true;
        if (depths[next] >= depths[to] || next == unit ||
            visited[next] == searches)
          continue;
        visited[next] = searches;
        open.push_back(next);
      }
  }
  return false;
}

bool Fusion::tryMerge(unsigned a, unsigned b) {
  if (a == b || !canShareKernel(units[a], units[b]) || hasDetour(a, b) ||
      hasDetour(b, a))
    return false;
  Unit &into = units[a], &from = units[b];
  for (unsigned op : from.ops)
    unitOf[op] = a;
  into.ops.append(from.ops);
  llvm::sort(into.ops);
  into.space.columns = std::max(into.space.columns, from.space.columns);
  from.ops.clear();
  findDepths();
  return true;
}

SmallVector<const Fusion::Unit *> Fusion::schedule() const {
  // The units whose results each unit needs and that are not scheduled yet.
  std::vector<std::set<unsigned>> waits(units.size());
  for (unsigned op = 0; op < ops.size(); ++op)
    for (Edge edge : users[op])
      if (unitOf[op] != unitOf[edge.to])
        waits[unitOf[edge.to]].insert(unitOf[op]);
  // Among the units that wait for no other, the one whose last op comes first.
  std::set<std::pair<unsigned, unsigned>> ready;
  auto addIfReady = [&](unsigned unit) {
    if (!units[unit].ops.empty() && waits[unit].empty())
      ready.insert({units[unit].ops.back(), unit});
  };
  for (unsigned unit = 0; unit < units.size(); ++unit)
    addIfReady(unit);
  SmallVector<const Unit *> order;
  while (!ready.empty()) {
    unsigned unit = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(&units[unit]);
    for (unsigned op : units[unit].ops)
      for (Edge edge : users[op])
        if (waits[unitOf[edge.to]].erase(unit))
          addIfReady(unitOf[edge.to]);
  }
  return order;
}

bool Fusion::isNeededOutside(Operation *op, const Unit &unit) const {
  return nodes.lookup(op)->isSum() || neededBeyond(op->getResult(0), unit);
}

bool Fusion::neededBeyond(Value value, const Unit &unit) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (nodes.lookup(user))
      return unitOf[numbers.lookup(user)] != unitOf[unit.ops.front()];
    if (isa<ViewOpInterface>(user) || nodes.isRepeated(user))
      return neededBeyond(user->getResult(0), unit);
    return true;
  });
}

} // namespace rota::lowering

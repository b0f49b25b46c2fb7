// SPDX-License-Identifier: Apache-2.0
//
// Finds the ops that work row by row, and their rows.
#include "lowering/kernels/rows/FusionNodes.h"

using namespace mlir;
using mlir::rota::BroadcastOp;
using mlir::rota::ReduceKind;
using mlir::rota::ReduceOp;
using mlir::rota::viewedValue;
using mlir::rota::ViewOpInterface;

namespace rota::lowering {

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static ArrayRef<int64_t> shapeOf(Value value) {
  return tensorOf(value).getShape();
}

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

static bool isTensorOfNumbers(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && tensor.getNumElements() > 0 &&
         tensor.getElementType().isIntOrFloat();
}

static bool isElementwise(Operation *op) {
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
         OpTrait::hasElementwiseMappableTraits(op) &&
         op->getNumResults() == 1 &&
         llvm::all_of(op->getOperandTypes(), isTensorOfNumbers) &&
         isTensorOfNumbers(op->getResult(0).getType());
}

static bool isUniformConstant(Operation *op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  return constant && isa<SplatElementsAttr>(constant.getValue()) &&
         isTensorOfNumbers(constant.getType());
}

/// Whether the op may stand in a kernel's body.
static bool isFusable(Operation *op) {
  return isElementwise(op) || isUniformConstant(op) ||
         isa<BroadcastOp, ReduceOp>(op);
}

/// The row of the operand that row d0 of the result reads. The dimensions
/// `rowDims` index the rows of the result; the operand has the dimensions
/// `dims` of these. A sum over runs of neighbouring dimensions.
static AffineMap mapOfRows(ArrayRef<int64_t> rowDims, ArrayRef<int64_t> dims,
                           MLIRContext *context) {
  AffineExpr row = getAffineDimExpr(0, context);
  AffineExpr index = getAffineConstantExpr(0, context);
  int64_t operandStride = 1;
  for (int64_t end = dims.size(); end > 0;) {
    int64_t begin = end - 1;
    while (begin > 0 && dims[begin - 1] + 1 == dims[begin])
      --begin;
    int64_t size =
        product(rowDims.slice(dims[begin], dims[end - 1] - dims[begin] + 1));
    int64_t stride = product(rowDims.drop_front(dims[end - 1] + 1));
    AffineExpr part = row.floorDiv(stride);
    if (product(rowDims.take_front(dims[begin])) > 1)
      part = part % size;
    if (size > 1)
      index = index + part * operandStride;
    operandStride *= size;
    end = begin;
  }
  return AffineMap::get(1, 0, index);
}

std::optional<Access> accessOfBroadcast(BroadcastOp broadcast,
                                        const Access &access, int64_t columns) {
  ArrayRef<int64_t> shape = shapeOf(broadcast.getResult());
  ArrayRef<int64_t> dims = broadcast.getDims();
  // The leading dimensions that make the rows.
  int64_t rank = shape.size(), split = rank;
  if (access.isRow && rank > 0)
    for (--split; split > 0 && product(shape.drop_front(split)) < columns;)
      --split;
  if (access.isRow && product(shape.drop_front(split)) != columns)
    return std::nullopt;
  auto inRow =
      llvm::partition_point(dims, [&](int64_t dim) { return dim < split; });
  ArrayRef<int64_t> ofRows = dims.take_front(inRow - dims.begin());
  ArrayRef<int64_t> ofColumns = dims.drop_front(ofRows.size());
  bool isRow = !ofColumns.empty();
  if (isRow && int64_t(ofColumns.size()) != rank - split)
    return std::nullopt;
  AffineMap map =
      mapOfRows(shape.take_front(split), ofRows, broadcast.getContext());
  return Access{broadcast.getInput(), map.compose(access.map), isRow};
}

FusionNodes::FusionNodes(Block &block) {
  // Users before what they use.
  for (Operation &op : llvm::reverse(block))
    if (isFusable(&op) && isCheap(&op))
      repeated.insert(&op);
  findPerRow(block);
  for (Operation &op : block.without_terminator())
    if (isFusable(&op) &&
        (!repeated.contains(&op) || isNeededByStaying(op.getResult(0))))
      if (std::optional<Node> node = classify(&op))
        nodes[&op] = *node;
  // A broadcast that a node cannot repeat is a node of its own.
  while (Operation *broadcast = findUnrepeatable(block)) {
    repeated.erase(broadcast);
    nodes[broadcast] = *classify(broadcast);
  }
}

Operation *FusionNodes::findUnrepeatable(Block &block) const {
  for (Operation &op : block.without_terminator())
    if (const Node *node = lookup(&op))
      for (unsigned i = 0; i < op.getNumOperands(); ++i) {
        SmallVector<Access> ignored;
        if (Operation *broadcast =
                collect(operandAccess(&op, i), node->space.columns, ignored))
          return broadcast;
      }
  return nullptr;
}

const FusionNodes::Node *FusionNodes::lookup(Operation *op) const {
  auto found = nodes.find(op);
  return found == nodes.end() ? nullptr : &found->second;
}

bool FusionNodes::isRepeated(Operation *op) const {
  return repeated.contains(op) &&
         (!nodes.contains(op) || isa<arith::ConstantOp>(op));
}

bool FusionNodes::tryRepeat(Operation *op) {
  Node node = nodes.at(op);
  nodes.erase(op);
  repeated.insert(op);
  if (!findUnrepeatable(*op->getBlock()))
    return true;
  repeated.erase(op);
  nodes[op] = node;
  return false;
}

bool FusionNodes::isNeededByStaying(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (isa<ViewOpInterface>(user))
      return isNeededByStaying(user->getResult(0));
    // A reduction that is no node stays too.
    auto reduce = dyn_cast<ReduceOp>(user);
    return !isFusable(user) || (reduce && !classifyReduce(reduce));
  });
}

bool FusionNodes::isCheap(Operation *op) const {
  if (isa<BroadcastOp, arith::ExtFOp>(op) || isUniformConstant(op))
    return true;
  if (!isElementwise(op))
    return false;
  auto type = tensorOf(op->getResult(0));
  return type.getElementType().isInteger(1) || type.getNumElements() == 1 ||
         feedsSharedBroadcasts(op);
}

/// Whether all uses repeat the value for every row.
bool FusionNodes::feedsSharedBroadcasts(Operation *op) const {
  return !op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
    if (auto broadcast = dyn_cast<BroadcastOp>(user)) {
      int64_t leading = tensorOf(broadcast.getResult()).getRank() -
                        broadcast.getDims().size();
      return leading > 0 && llvm::all_of(broadcast.getDims(), [&](int64_t dim) {
               return dim >= leading;
             });
    }
    return isElementwise(user) && repeated.contains(user);
  });
}

/// Whether the value is one value per row of something larger.
bool FusionNodes::isPerRow(Value value) const {
  Operation *op = viewedValue(value).getDefiningOp();
  if (!op)
    return false;
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    int64_t rank = tensorOf(reduce.getInput()).getRank();
    return reduce.getDims().size() == 1 && rank > 1 &&
           reduce.getDims().front() == rank - 1;
  }
  return perRow.contains(op);
}

/// Whether an operand or user of an elementwise op shows that its elements are
/// values per row.
bool FusionNodes::touchesPerRow(Operation *op) const {
  if (llvm::any_of(op->getOperands(),
                   [&](Value operand) { return isPerRow(operand); }))
    return true;
  int64_t rank = tensorOf(op->getResult(0)).getRank();
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    if (auto broadcast = dyn_cast<BroadcastOp>(user)) {
      ArrayRef<int64_t> dims = broadcast.getDims();
      return rank > 0 &&
             tensorOf(broadcast.getResult()).getRank() == rank + 1 &&
             dims.back() == rank - 1;
    }
    return perRow.contains(user);
  });
}

void FusionNodes::findPerRow(Block &block) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation &op : block.without_terminator())
      if (isElementwise(&op) && !perRow.contains(&op) && touchesPerRow(&op))
        changed |= perRow.insert(&op).second;
  }
}

std::optional<FusionNodes::Node> FusionNodes::classify(Operation *op) const {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return classifyReduce(reduce);
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  int64_t size = product(shape);
  if (shape.empty() || perRow.contains(op))
    return Node{{size, 0}, false, {}};
  return Node{{size / shape.back(), shape.back()}, true, {}};
}

std::optional<FusionNodes::Node>
FusionNodes::classifyReduce(ReduceOp op) const {
  ArrayRef<int64_t> shape = shapeOf(op.getInput());
  ArrayRef<int64_t> dims = op.getDims();
  int64_t rank = shape.size(), count = dims.size();
  bool sums = op.getKind() == ReduceKind::Sum;
  if (count == 0)
    return std::nullopt;
  if (sums && count == rank && isPerRow(op.getInput()))
    return Node{{product(shape), 0}, false, ReduceForm::Values};
  if (sums && count == rank && rank > 1)
    return Node{
        {product(shape.drop_back()), shape.back()}, false, ReduceForm::Both};
  if (dims.front() == rank - count) // the last dimensions
    return Node{{product(shape.take_front(rank - count)),
                 product(shape.take_back(count))},
                false,
                ReduceForm::Row};
  if (sums && dims.back() == count - 1) // the first dimensions
    return Node{
        {product(shape.take_front(count)), product(shape.drop_front(count))},
        true,
        ReduceForm::Sum};
  return std::nullopt;
}

Access FusionNodes::operandAccess(Operation *node, unsigned index) const {
  const Node &info = nodes.at(node);
  AffineMap identity = AffineMap::getMultiDimIdentityMap(1, node->getContext());
  Value operand = node->getOperand(index);
  if (info.form)
    return {operand, identity, *info.form != ReduceForm::Values};
  Access access{operand, identity, info.isRow};
  if (auto broadcast = dyn_cast<BroadcastOp>(node))
    return *accessOfBroadcast(broadcast, access, info.space.columns);
  return access;
}

SmallVector<Access> FusionNodes::accesses(Operation *node) const {
  SmallVector<Access> result;
  for (unsigned i = 0; i < node->getNumOperands(); ++i)
    collect(operandAccess(node, i), lookup(node)->space.columns, result);
  return result;
}

/// Collects what is read at `access`. Returns a broadcast that cannot be
/// repeated there, or null.
Operation *FusionNodes::collect(const Access &access, int64_t columns,
                                SmallVectorImpl<Access> &accesses) const {
  Value value = viewedValue(access.value);
  Operation *op = value.getDefiningOp();
  if (!op || !isRepeated(op)) {
    accesses.push_back({value, access.map, access.isRow});
    return nullptr;
  }
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    auto inner = accessOfBroadcast(broadcast, access, columns);
    return inner ? collect(*inner, columns, accesses) : op;
  }
  for (Value operand : op->getOperands())
    if (Operation *culprit =
            collect({operand, access.map, access.isRow}, columns, accesses))
      return culprit;
  return nullptr;
}

} // namespace rota::lowering

// SPDX-License-Identifier: Apache-2.0
//
// Builds a kernel and a launch for each group of ops.
#include "lowering/kernels/Passes.h"
#include "lowering/kernels/rows/Fusion.h"

#include "mlir/IR/IRMapping.h"

#include <map>

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using mlir::rota::BroadcastOp;
using mlir::rota::KernelOp;
using mlir::rota::LaunchOp;
using mlir::rota::ReduceOp;
using mlir::rota::ResultKind;
using mlir::rota::ResultKindAttr;
using mlir::rota::viewedValue;
using mlir::rota::YieldOp;

namespace rota::lowering {
#define GEN_PASS_DEF_FORMKERNELS
#include "lowering/kernels/KernelPasses.h.inc"

namespace {

/// Builds the kernel of one group.
class GroupKernel {
public:
  GroupKernel(const Fusion &fusion, const Fusion::Unit &unit,
              MLIRContext *context)
      : fusion(fusion), unit(unit), builder(context),
        loc(fusion.getOp(unit.ops.front())->getLoc()),
        kernel(KernelOp::create(builder, loc, name(), builder.getArrayAttr({}),
                                builder.getArrayAttr({}))),
        body(&kernel->getBody().emplaceBlock()) {
    builder.setInsertionPointToEnd(body);
  }

  /// Builds the kernel, which stands in no module yet.
  OwningOpRef<KernelOp> build();

  /// The launch's operands, and the values that its results replace.
  ArrayRef<Value> getInputs() const { return inputs; }
  ArrayRef<Value> getReplaced() const { return replaced; }

private:
  /// The composite ops that the group computes: "rms_norm", "activation_grad".
  std::string name() const {
    llvm::SmallSetVector<StringRef, 4> parts;
    for (auto number : unit.ops)
      if (auto named = dyn_cast<NameLoc>(fusion.getOp(number)->getLoc()))
        parts.insert(named.getName().getValue());
    return parts.empty() ? "fused" : llvm::join(parts, "_");
  }

  using Key = std::tuple<const void *, const void *, bool>;

  static Key keyOf(const Access &access) {
    return {access.value.getAsOpaquePointer(), access.map.getAsOpaquePointer(),
            access.isRow};
  }

  Type rowType(Type element, bool isRow) const {
    return isRow ? RankedTensorType::get({unit.space.columns}, element)
                 : RankedTensorType::get({}, element);
  }
  Type rowType(Value value, bool isRow) const {
    return rowType(getElementTypeOrSelf(value.getType()), isRow);
  }

  Value get(const Access &access);
  Value repeat(Operation *op, const Access &access);
  Value addArgument(const Access &access);
  void addNode(Operation *op);
  Value addReduce(ReduceOp op, Value input, bool alongRow);
  Value addBroadcast(Value value, bool wasRow, const Access &access);
  Value copy(Operation *op, ArrayRef<Value> operands, bool isRow);

  const Fusion &fusion;
  const Fusion::Unit &unit;
  OpBuilder builder;
  Location loc; // location of the first op, for diagnostics
  OwningOpRef<KernelOp> kernel;
  Block *body;
  std::map<Key, Value> values;
  SmallVector<Attribute> maps, kinds;
  SmallVector<Value> inputs, replaced, yielded;
};

} // namespace

OwningOpRef<KernelOp> GroupKernel::build() {
  for (unsigned number : unit.ops)
    addNode(fusion.getOp(number));
  YieldOp::create(builder, loc, yielded);
  kernel->setOperandMapsAttr(builder.getArrayAttr(maps));
  kernel->setResultKindsAttr(builder.getArrayAttr(kinds));
  return std::move(kernel);
}

/// A copy of an elementwise op on rows.
Value GroupKernel::copy(Operation *op, ArrayRef<Value> operands, bool isRow) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto splat = cast<SplatElementsAttr>(constant.getValue());
    auto type = cast<ShapedType>(rowType(constant, isRow));
    return arith::ConstantOp::create(builder, loc, splat.resizeSplat(type));
  }
  IRMapping mapping;
  mapping.map(op->getOperands(), operands);
  Operation *copied = builder.clone(*op, mapping);
  copied->getResult(0).setType(rowType(op->getResult(0), isRow));
  return copied->getResult(0);
}

Value GroupKernel::addBroadcast(Value value, bool wasRow,
                                const Access &access) {
  if (wasRow == access.isRow)
    return value;
  return BroadcastOp::create(builder, loc, rowType(value, access.isRow), value,
                             ArrayRef<int64_t>{});
}

Value GroupKernel::addReduce(ReduceOp op, Value input, bool alongRow) {
  if (!alongRow)
    return input;
  return ReduceOp::create(builder, loc, rowType(op.getResult(), false),
                          op.getKind(), input, ArrayRef<int64_t>{0});
}

/// The value in the kernel that is read at `access`.
Value GroupKernel::get(const Access &access) {
  Access viewed{viewedValue(access.value), access.map, access.isRow};
  if (auto found = values.find(keyOf(viewed)); found != values.end())
    return found->second;
  Operation *op = viewed.value.getDefiningOp();
  bool repeats = op && fusion.getNodes().isRepeated(op);
  Value value = repeats ? repeat(op, viewed) : addArgument(viewed);
  return values[keyOf(viewed)] = value;
}

Value GroupKernel::repeat(Operation *op, const Access &access) {
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    Access inner = *accessOfBroadcast(broadcast, access, unit.space.columns);
    return addBroadcast(get(inner), inner.isRow, access);
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(get({operand, access.map, access.isRow}));
  return copy(op, operands, access.isRow);
}

Value GroupKernel::addArgument(const Access &access) {
  inputs.push_back(access.value);
  maps.push_back(AffineMapAttr::get(access.map));
  return body->addArgument(rowType(access.value, access.isRow), loc);
}

void GroupKernel::addNode(Operation *op) {
  const FusionNodes &nodes = fusion.getNodes();
  const FusionNodes::Node &node = *nodes.lookup(op);
  AffineMap identity = AffineMap::getMultiDimIdentityMap(1, op->getContext());
  Access own{op->getResult(0), identity, node.isRow};
  SmallVector<Value> operands;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    operands.push_back(get(nodes.operandAccess(op, i)));
  Value value;
  if (auto reduce = dyn_cast<ReduceOp>(op))
    value = addReduce(reduce, operands[0],
                      *node.form == ReduceForm::Row ||
                          *node.form == ReduceForm::Both);
  else if (isa<BroadcastOp>(op))
    value = addBroadcast(operands[0], nodes.operandAccess(op, 0).isRow, own);
  else
    value = copy(op, operands, node.isRow);
  values[keyOf(own)] = value;
  if (!fusion.isNeededOutside(op, unit))
    return;
  yielded.push_back(value);
  replaced.push_back(op->getResult(0));
  kinds.push_back(ResultKindAttr::get(
      op->getContext(), node.isSum() ? ResultKind::Sum : ResultKind::Row));
}

namespace {

struct FormKernels : impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    std::map<std::string, KernelOp> known;
    for (auto kernel : getOperation().getOps<KernelOp>())
      known.insert({textOf(kernel), kernel});
    getOperation().walk([&](func::FuncOp function) {
      for (Block &block : function.getBody())
        formKernels(block, symbols, known);
    });
  }

private:
  /// The kernel's text but for its name: equal for equal kernels.
  static std::string textOf(KernelOp kernel) {
    OwningOpRef<KernelOp> copy = kernel.clone();
    copy->setSymName("fused");
    std::string text;
    llvm::raw_string_ostream stream(text);
    copy->getOperation()->print(stream, OpPrintingFlags().useLocalScope());
    return text;
  }

  void formKernels(Block &block, SymbolTable &symbols,
                   std::map<std::string, KernelOp> &known) {
    SmallVector<Operation *> before;
    for (Operation &op : block.without_terminator())
      before.push_back(&op);
    Fusion fusion(block);
    for (const Fusion::Unit *unit : fusion.schedule()) {
      if (unit->isGroup)
        launchGroup(fusion, *unit, block, symbols, known);
      else
        fusion.getOp(unit->ops.front())->moveBefore(block.getTerminator());
    }
    eraseUnused(before);
  }

  void launchGroup(const Fusion &fusion, const Fusion::Unit &unit, Block &block,
                   SymbolTable &symbols,
                   std::map<std::string, KernelOp> &known) {
    GroupKernel group(fusion, unit, &getContext());
    OwningOpRef<KernelOp> built = group.build();
    auto [entry, isNew] = known.insert({textOf(*built), KernelOp()});
    if (isNew) {
      entry->second = built.release();
      symbols.insert(entry->second);
      ++kernels;
    }
    OpBuilder builder(block.getTerminator());
    ArrayRef<Value> replaced = group.getReplaced();
    auto launch = LaunchOp::create(
        builder, fusion.getOp(unit.ops.back())->getLoc(),
        TypeRange(ValueRange(replaced)),
        FlatSymbolRefAttr::get(entry->second.getSymNameAttr()),
        builder.getI64IntegerAttr(unit.space.rows), group.getInputs());
    for (auto [old, result] : llvm::zip(replaced, launch.getResults()))
      Value(old).replaceAllUsesWith(result);
    ++launches;
  }

  /// Erases what is left of fused ops, users before what they use.
  static void eraseUnused(ArrayRef<Operation *> ops) {
    SmallVector<Operation *> left(llvm::reverse(ops));
    for (bool changed = true; changed;) {
      changed = false;
      SmallVector<Operation *> kept;
      for (Operation *op : left)
        if (isOpTriviallyDead(op)) {
          op->erase();
          changed = true;
        } else {
          kept.push_back(op);
        }
      left = kept;
    }
  }
};

} // namespace
} // namespace rota::lowering

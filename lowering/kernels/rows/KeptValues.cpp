// SPDX-License-Identifier: Apache-2.0
//
// The choice of values that a row keeps between its passes.
#include "lowering/kernels/rows/KeptValues.h"
#include "lowering/kernels/Emit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace rota::lowering {

/// About the vector instructions of a rounding to bf16, and of a function such
/// as an exponential.
static constexpr int kRounding = 7, kFunction = 10;
/// A value that takes no more instructions is computed again.
static constexpr int kCheap = 6;
/// The most bytes of a row that are kept.
static constexpr int64_t kMostBytes = 64 << 10;

/// About the instructions of an op beside those of its operands.
static int instructionsOf(Operation *op) {
  if (isa<arith::ConstantOp, mlir::rota::BroadcastOp>(op))
    return 0;
  bool isRounded = RowBody::elementOf(op->getResult(0)).isBF16();
  if (isa<arith::TruncFOp>(op))
    return kRounding;
  bool isFunction =
      isa<arith::DivFOp>(op) ||
      (isa<math::MathDialect>(op->getDialect()) && !isa<math::FmaOp>(op));
  return (isFunction ? kFunction : 1) + (isRounded ? kRounding : 0);
}

namespace {
class KeptChoice {
public:
  explicit KeptChoice(const RowBody &body) : body(body) {
    for (int pass = 0; pass < body.getPasses(); ++pass)
      for (Value root : body.getColumnRoots(pass))
        setFirstPass(root, pass);
    for (Operation &op : body.getKernel().getBody().front())
      for (Value result : op.getResults())
        setInstructions(result);
  }

  SmallVector<KeptValue> values() {
    for (int pass = 1; pass < body.getPasses(); ++pass) {
      llvm::SmallPtrSet<void *, 16> seen;
      for (Value root : body.getColumnRoots(pass))
        keepBelow(root, pass, seen);
    }
    int64_t bytes = 0;
    SmallVector<KeptValue> values;
    for (Value value : kept) {
      bytes += body.getColumns() * bytesOf(RowBody::elementOf(value));
      if (bytes > kMostBytes)
        break;
      values.push_back({value, firstPass.lookup(value)});
    }
    return values;
  }

private:
  void setFirstPass(Value value, int pass) {
    if (RowBody::rankOf(value) == 0 ||
        !firstPass.try_emplace(value, pass).second)
      return;
    if (Operation *op = value.getDefiningOp())
      for (Value operand : op->getOperands())
        setFirstPass(operand, pass);
  }

  /// Sets what it takes to compute a value where the costly ones that it is
  /// made of are loaded.
  void setInstructions(Value value) {
    if (RowBody::rankOf(value) == 0)
      return;
    Operation *op = value.getDefiningOp();
    int count = instructionsOf(op);
    for (Value operand :
         llvm::SmallSetVector<Value, 4>(op->operand_begin(), op->operand_end()))
      count += RowBody::rankOf(operand) == 0 ? 0
               : isa<BlockArgument>(operand) ? 1
                                             : instructions.lookup(operand);
    Type element = RowBody::elementOf(value);
    bool canKeep = (element.isF32() || element.isBF16()) &&
                   !isa<arith::ExtFOp, mlir::rota::BroadcastOp>(op);
    if (canKeep && count > kCheap) {
      costly.insert(value);
      count = 1;
    }
    instructions[value] = count;
  }

  /// Keeps the values of earlier passes that `value` is made of in `pass`.
  void keepBelow(Value value, int pass, llvm::SmallPtrSetImpl<void *> &seen) {
    Operation *op = value.getDefiningOp();
    if (!op || RowBody::rankOf(value) == 0 ||
        !seen.insert(value.getAsOpaquePointer()).second)
      return;
    if (costly.contains(value) && firstPass.lookup(value) < pass) {
      kept.insert(value);
      return;
    }
    for (Value operand : op->getOperands())
      keepBelow(operand, pass, seen);
  }

  const RowBody &body;
  llvm::DenseMap<Value, int> firstPass, instructions;
  llvm::DenseSet<Value> costly;
  llvm::SetVector<Value> kept;
};
} // namespace

SmallVector<KeptValue> keptValues(const RowBody &body) {
  return KeptChoice(body).values();
}

} // namespace rota::lowering

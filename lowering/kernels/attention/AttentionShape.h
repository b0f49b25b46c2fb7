// SPDX-License-Identifier: Apache-2.0
//
// The sizes and options of attention, and the arguments that its kernels take
// on every device.
#ifndef ROTA_LOWERING_KERNELS_ATTENTION_ATTENTIONSHAPE_H
#define ROTA_LOWERING_KERNELS_ATTENTION_ATTENTIONSHAPE_H

#include "ir/rota/attention/AttentionForm.h"
#include "lowering/kernels/KernelPlan.h"
#include <optional>
#include <string>

namespace rota::lowering {

/// q is [batch, sequence, heads, size], k [batch, sequence, keyHeads, size], v
/// [batch, sequence, keyHeads, valueSize].
struct AttentionShape {
  int64_t batch, sequence, heads, keyHeads, size, valueSize;
  mlir::rota::AttentionMask mask;
  bool hasSinks;
  float scale, softCap; // 0: no cap
  mlir::Type element;
  mlir::Type wideElement; // type of the output, or of the query's cotangent
  bool hasPrevious;
  /// Whether the rank's position says if the keys are seen at all. The kernel
  /// then reads it and the distance in blocks, or the keys' position.
  bool dependsOnPosition;
  bool hasKeyPosition;
  bool hasDocuments;

  int64_t group() const { return heads / keyHeads; }
  int64_t largestSize() const { return std::max(size, valueSize); }
};

inline mlir::Value wideResult(mlir::rota::AttentionOp op) {
  return op.getOutput();
}
inline mlir::Value wideResult(mlir::rota::AttentionGradOp op) {
  return op.getQueryCotangent();
}
inline bool hasPrevious(mlir::rota::AttentionOp op) {
  return bool(op.getPrevious());
}
inline bool hasPrevious(mlir::rota::AttentionGradOp) { return false; }

/// The mask for keys of another block: without a window and documents, queries
/// see all of them or none, so the mask is the same for each block, and so is
/// the kernel.
template <typename Op>
mlir::rota::AttentionMask maskOfSeen(Op op, int64_t sequence) {
  if (op.getPosition() && !op.getWindow() && !op.getDocuments())
    return mlir::rota::AttentionMask::of(sequence, std::nullopt,
                                         /*bidirectional=*/true);
  return op.getMask();
}

/// The shape of rota.attention or its derivative, and a text that determines
/// it.
template <typename Op> AttentionShape attentionShape(Op op) {
  auto q = llvm::cast<mlir::RankedTensorType>(op.getQuery().getType());
  auto v = llvm::cast<mlir::RankedTensorType>(op.getValue().getType());
  std::optional<llvm::APFloat> cap = op.getSoftCap();
  return {q.getDimSize(0),
          q.getDimSize(1),
          q.getDimSize(2),
          v.getDimSize(2),
          q.getDimSize(3),
          v.getDimSize(3),
          maskOfSeen(op, q.getDimSize(1)),
          bool(op.getSinks()),
          float(op.getScale().convertToDouble()),
          cap ? float(cap->convertToDouble()) : 0.0f,
          q.getElementType(),
          mlir::getElementTypeOrSelf(wideResult(op)),
          hasPrevious(op),
          op.getPosition() && !op.getBidirectional(),
          bool(op.getKeyPosition()),
          bool(op.getDocuments())};
}
std::string toString(const AttentionShape &shape);
/// Adds the arguments of attention's kernel that its softmax begins with: what
/// other keys gave, and sinks; then documents.
inline void addInitialState(mlir::rota::AttentionOp op, KernelCall &call) {
  for (unsigned i = 3; i < op->getNumOperands(); ++i) {
    mlir::Value operand = op->getOperand(i);
    if (operand != op.getPosition() && operand != op.getKeyPosition())
      call.arguments.push_back({KernelArgument::Kind::Operand, i});
  }
}
/// Adds the documents, where the op has them.
template <typename Op> void addDocuments(Op op, KernelCall &call) {
  if (mlir::Value documents = op.getDocuments())
    call.arguments.push_back(
        {KernelArgument::Kind::Operand,
         unsigned(llvm::find(op->getOperands(), documents) -
                  op->operand_begin())});
}
/// Adds the last arguments of a kernel that depends on the position, which are
/// the op's last operands; `number` is the kind of the distance in blocks.
template <typename Op>
void addPosition(Op op, const AttentionShape &shape, KernelCall &call,
                 KernelArgument::Kind number = KernelArgument::Kind::Number) {
  using Kind = KernelArgument::Kind;
  if (!shape.dependsOnPosition)
    return;
  unsigned last = op->getNumOperands() - 1;
  if (op.getKeyPosition()) {
    call.arguments.append({{Kind::Operand, last - 1}, {Kind::Operand, last}});
    return;
  }
  call.arguments.push_back({Kind::Operand, last});
  call.arguments.push_back({number, unsigned(*op.getBehind())});
}

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ATTENTION_ATTENTIONSHAPE_H

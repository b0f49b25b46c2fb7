// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic with the same bits on every host.
#include "lowering/simt/Steps.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace rota::lowering {

static bool isBf16(const Value *value) {
  return value->getType()->getScalarType()->isBFloatTy();
}

/// `element` or a vector of as many as `type` has.
static Type *withElement(Type *type, Type *element) {
  auto *vector = dyn_cast<VectorType>(type);
  return vector ? VectorType::get(element, vector->getElementCount()) : element;
}

static Value *widen(IRBuilder<> &builder, Value *value) {
  if (!isBf16(value))
    return value;
  Type *type = value->getType();
  Type *words = withElement(type, builder.getInt32Ty());
  Value *half =
      builder.CreateBitCast(value, withElement(type, builder.getInt16Ty()));
  Value *bits = builder.CreateShl(builder.CreateZExt(half, words), 16);
  return builder.CreateBitCast(bits, withElement(type, builder.getFloatTy()));
}

static Value *roundToBf16(IRBuilder<> &builder, Value *value) {
  Type *type = value->getType();
  Type *words = withElement(type, builder.getInt32Ty());
  auto constant = [&](uint32_t bits) { return ConstantInt::get(words, bits); };
  Value *bits = builder.CreateBitCast(value, words);
  Value *magnitude = builder.CreateAnd(bits, constant(0x7FFFFFFF));
  Value *isNaN = builder.CreateICmpUGT(magnitude, constant(0x7F800000));
  Value *isOdd = builder.CreateAnd(builder.CreateLShr(bits, 16), constant(1));
  Value *rounded = builder.CreateLShr(
      builder.CreateAdd(bits, builder.CreateAdd(isOdd, constant(0x7FFF))), 16);
  Value *result = builder.CreateSelect(isNaN, constant(0x7FFF), rounded);
  Value *half =
      builder.CreateTrunc(result, withElement(type, builder.getInt16Ty()));
  return builder.CreateBitCast(half, withElement(type, builder.getBFloatTy()));
}

/// Intrinsics whose result of f32 operands rounds to the one of bf16 operands.
static bool hasExactForm(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::fabs:
  case Intrinsic::copysign:
  case Intrinsic::maxnum:
  case Intrinsic::minnum:
  case Intrinsic::maximum:
  case Intrinsic::minimum:
    return true;
  default:
    return false;
  }
}

/// The replacement of an operation on bf16; null for one that has no form in
/// f32 with the same bits. Two roundings are harmless for + - x / of bf16: f32
/// has more than twice the bits and two more.
static Value *replaceBf16(Instruction &instruction) {
  IRBuilder<> builder(&instruction);
  auto operand = [&](unsigned index) {
    return widen(builder, instruction.getOperand(index));
  };
  if (isa<FPTruncInst>(instruction)) {
    Value *source = instruction.getOperand(0);
    return source->getType()->getScalarType()->isFloatTy()
               ? roundToBf16(builder, source)
               : nullptr;
  }
  if (isa<FPExtInst>(instruction))
    return builder.CreateFPExt(operand(0), instruction.getType());
  if (auto *compare = dyn_cast<FCmpInst>(&instruction))
    return builder.CreateFCmp(compare->getPredicate(), operand(0), operand(1));
  if (isa<FPToSIInst, FPToUIInst>(instruction))
    return builder.CreateCast(cast<CastInst>(instruction).getOpcode(),
                              operand(0), instruction.getType());
  if (isa<UnaryOperator>(instruction))
    return roundToBf16(builder, builder.CreateFNeg(operand(0)));
  if (auto *binary = dyn_cast<BinaryOperator>(&instruction))
    return roundToBf16(builder, builder.CreateBinOp(binary->getOpcode(),
                                                    operand(0), operand(1)));
  auto *call = dyn_cast<IntrinsicInst>(&instruction);
  if (!call || !hasExactForm(call->getIntrinsicID()))
    return nullptr;
  SmallVector<Value *> operands;
  for (unsigned index = 0; index < call->arg_size(); ++index)
    operands.push_back(operand(index));
  return roundToBf16(builder,
                     builder.CreateIntrinsic(operands[0]->getType(),
                                             call->getIntrinsicID(), operands));
}

/// Whether the instruction computes with bf16; others may only move them.
static bool computesWithBf16(const Instruction &instruction) {
  bool mentions = isBf16(&instruction) ||
                  any_of(instruction.operands(),
                         [](const Use &use) { return isBf16(use); });
  if (!mentions)
    return false;
  return isa<FPTruncInst, FPExtInst, FCmpInst, FPToSIInst, FPToUIInst,
             SIToFPInst, UIToFPInst, UnaryOperator, BinaryOperator>(
             instruction) ||
         isa<IntrinsicInst>(instruction);
}

/// Whether the instruction means the same for integers of 16 bits.
static bool onlyMoves(const Instruction &instruction) {
  return isa<LoadInst, StoreInst, PHINode, SelectInst, ExtractElementInst,
             InsertElementInst, ShuffleVectorInst, BitCastInst, FreezeInst>(
      instruction);
}

/// Moves bf16 as integers: some hosts move them by way of f32, which changes
/// signaling NaNs and calls a library.
static LogicalResult moveAsIntegers(mlir::Location loc, Function &function) {
  Type *i16 = Type::getInt16Ty(function.getContext());
  for (Instruction &instruction : instructions(function)) {
    bool mentions = isBf16(&instruction);
    for (Use &use : instruction.operands()) {
      mentions |= isBf16(use);
      if (auto *constant = dyn_cast<Constant>(use); constant && isBf16(use))
        use.set(ConstantExpr::getBitCast(
            constant, withElement(constant->getType(), i16)));
    }
    if (mentions && !onlyMoves(instruction))
      return unknownInstruction(loc, instruction, instruction.getOpcodeName());
  }
  for (Instruction &instruction : instructions(function))
    if (isBf16(&instruction))
      instruction.mutateType(withElement(instruction.getType(), i16));
  return success();
}

LogicalResult fixArithmetic(mlir::Location loc, Function &function) {
  SmallVector<Instruction *> all;
  for (Instruction &instruction : instructions(function))
    all.push_back(&instruction);
  for (Instruction *instruction : all) {
    if (isa<FPMathOperator>(instruction))
      instruction->copyFastMathFlags(FastMathFlags());
    auto *call = dyn_cast<IntrinsicInst>(instruction);
    if (call && call->getIntrinsicID() == Intrinsic::fmuladd) {
      IRBuilder<> builder(call);
      call->replaceAllUsesWith(builder.CreateIntrinsic(
          call->getType(), Intrinsic::fma,
          {call->getArgOperand(0), call->getArgOperand(1),
           call->getArgOperand(2)}));
      call->eraseFromParent();
      continue;
    }
    if (!computesWithBf16(*instruction))
      continue;
    Value *value = replaceBf16(*instruction);
    if (!value)
      return unknownInstruction(loc, *instruction,
                                call ? call->getCalledFunction()->getName()
                                     : instruction->getOpcodeName());
    instruction->replaceAllUsesWith(value);
    instruction->eraseFromParent();
  }
  return moveAsIntegers(loc, function);
}

} // namespace rota::lowering

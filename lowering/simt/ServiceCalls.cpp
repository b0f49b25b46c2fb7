// SPDX-License-Identifier: Apache-2.0
#include "lowering/simt/ServiceCalls.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace rota::lowering {

ServiceCalls::ServiceCalls(Module &module) : module(module) {}

Value *ServiceCalls::call(IRBuilder<> &builder, StringRef service, Type *result,
                          ArrayRef<Value *> operands) {
  SmallVector<Value *> values;
  SmallVector<Type *> types;
  for (Value *operand : operands) {
    if (operand->getType()->isPointerTy())
      operand = builder.CreateAddrSpaceCast(operand, builder.getPtrTy());
    values.push_back(operand);
    types.push_back(operand->getType());
  }
  return builder.CreateCall(
      module.getOrInsertFunction(service,
                                 FunctionType::get(result, types, false)),
      values);
}

Value *ServiceCalls::site(const Instruction &instruction, StringRef kind) {
  std::string text;
  raw_string_ostream stream(text);
  if (const DebugLoc &loc = instruction.getDebugLoc())
    stream << loc->getFilename() << ":" << loc.getLine() << ":" << loc.getCol();
  else
    stream << "no line";
  stream << " (" << kind << ")";
  sites.push_back(text);
  return i32(sites.size());
}

AllocaInst *ServiceCalls::slot(Function &function, Type *type) {
  AllocaInst *&slot = slots[{&function, type}];
  if (!slot) {
    IRBuilder<> builder(&*function.getEntryBlock().begin());
    slot = builder.CreateAlloca(type);
    // Vectors of f32 may need more than the 16 bytes of a GPU's accesses.
    slot->setAlignment(
        std::max(Align(16), module.getDataLayout().getABITypeAlign(type)));
  }
  return slot;
}

ConstantInt *ServiceCalls::i32(uint32_t value) const {
  return ConstantInt::get(Type::getInt32Ty(module.getContext()), value);
}

ConstantInt *ServiceCalls::i64(uint64_t value) const {
  return ConstantInt::get(Type::getInt64Ty(module.getContext()), value);
}

} // namespace rota::lowering

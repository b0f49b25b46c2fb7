// SPDX-License-Identifier: Apache-2.0
//
// Checks in front of accesses of memory. Memory on a thread's own stack and
// constants of the module need none.
#include "lowering/simt/Steps.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace rota::lowering {

static constexpr unsigned kSharedSpace = 3;

static bool needsCheck(const Value *address) {
  const Value *object = getUnderlyingObject(address);
  if (isa<AllocaInst>(object))
    return false;
  auto *global = dyn_cast<GlobalVariable>(object);
  return !global || global->getAddressSpace() == kSharedSpace;
}

namespace {

struct Checker {
  Function &function;
  ServiceCalls &services;

  void read(Instruction &instruction, Value *address, Value *bytes,
            Align alignment, StringRef kind) {
    if (!needsCheck(address))
      return;
    IRBuilder<> builder(&instruction);
    bool isOfProduct = instruction.hasMetadata(kProductRead);
    services.call(builder, isOfProduct ? "rotaSimtProductRead" : "rotaSimtRead",
                  builder.getVoidTy(),
                  {address, bytes, services.i64(alignment.value()),
                   services.site(instruction, kind)});
  }

  void write(Instruction &instruction, Value *address, Value *bytes,
             Align alignment, Value *value, StringRef kind) {
    if (!needsCheck(address))
      return;
    IRBuilder<> builder(&instruction);
    Value *stored = ConstantPointerNull::get(builder.getPtrTy());
    if (value && address->getType()->getPointerAddressSpace() == kSharedSpace) {
      stored = services.slot(function, value->getType());
      builder.CreateStore(value, stored);
    }
    services.call(builder, "rotaSimtWrite", builder.getVoidTy(),
                  {address, bytes, services.i64(alignment.value()), stored,
                   services.site(instruction, kind)});
  }

  Value *storeSize(Type *type) {
    return services.i64(function.getDataLayout().getTypeStoreSize(type));
  }
};

} // namespace

void addChecks(Function &function, ServiceCalls &services) {
  Checker checker{function, services};
  SmallVector<Instruction *> all;
  for (Instruction &instruction : instructions(function))
    all.push_back(&instruction);
  for (Instruction *instruction : all) {
    if (auto *load = dyn_cast<LoadInst>(instruction)) {
      checker.read(*load, load->getPointerOperand(),
                   checker.storeSize(load->getType()), load->getAlign(),
                   "load");
    } else if (auto *store = dyn_cast<StoreInst>(instruction)) {
      Value *value = store->getValueOperand();
      checker.write(*store, store->getPointerOperand(),
                    checker.storeSize(value->getType()), store->getAlign(),
                    value, "store");
    } else if (auto *transfer = dyn_cast<MemTransferInst>(instruction)) {
      Value *bytes = IRBuilder<>(transfer).CreateZExt(
          transfer->getLength(), Type::getInt64Ty(function.getContext()));
      checker.read(*transfer, transfer->getRawSource(), bytes,
                   transfer->getSourceAlign().valueOrOne(), "copy");
      checker.write(*transfer, transfer->getRawDest(), bytes,
                    transfer->getDestAlign().valueOrOne(), nullptr, "copy");
    } else if (auto *fill = dyn_cast<MemSetInst>(instruction)) {
      Value *bytes = IRBuilder<>(fill).CreateZExt(
          fill->getLength(), Type::getInt64Ty(function.getContext()));
      checker.write(*fill, fill->getRawDest(), bytes,
                    fill->getDestAlign().valueOrOne(), nullptr, "fill");
    }
  }
}

} // namespace rota::lowering

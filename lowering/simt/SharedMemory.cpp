// SPDX-License-Identifier: Apache-2.0
//
// Places of global variables in a block's shared memory. A kernel has those
// that it uses, as on a GPU; external ones, whose size the launch gives, lie
// after the others and all in one place.
#include "lowering/simt/Steps.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"

using namespace llvm;

namespace rota::lowering {

static constexpr unsigned kSharedSpace = 3;

LogicalResult unknownInstruction(mlir::Location loc,
                                 const Instruction &instruction,
                                 StringRef name) {
  auto error = mlir::emitError(loc, "expected instructions that the emulator "
                                    "knows, got '")
               << name << "' in '" << instruction.getFunction()->getName()
               << "'";
  if (const DebugLoc &place = instruction.getDebugLoc())
    error << " at line " << place.getLine();
  return error;
}

static Align alignmentOf(const GlobalVariable &variable) {
  const DataLayout &layout = variable.getDataLayout();
  return std::max(variable.getAlign().valueOrOne(),
                  layout.getABITypeAlign(variable.getValueType()));
}

FailureOr<SharedSizes> placeSharedMemory(mlir::Location loc, Module &module,
                                         ServiceCalls &services) {
  SmallVector<GlobalVariable *> variables;
  SmallVector<Constant *> constants;
  // Variables of fixed size come first.
  for (bool external : {false, true})
    for (GlobalVariable &variable : module.globals())
      if (variable.getAddressSpace() == kSharedSpace &&
          variable.isDeclaration() == external) {
        variables.push_back(&variable);
        constants.push_back(&variable);
      }
  convertUsersOfConstantsToInstructions(constants);
  SharedSizes sizes;
  for (GlobalVariable *variable : variables) {
    MapVector<Function *, SmallVector<Use *>> uses;
    for (Use &use : variable->uses())
      uses[cast<Instruction>(use.getUser())->getFunction()].push_back(&use);
    for (auto &[function, places] : uses) {
      if (function->getCallingConv() != CallingConv::PTX_Kernel)
        return mlir::emitError(loc, "expected shared memory in kernels alone, "
                                    "got '")
               << variable->getName() << "' in '" << function->getName() << "'";
      uint64_t offset = alignTo(sizes[function], alignmentOf(*variable));
      sizes[function] = offset + module.getDataLayout().getTypeAllocSize(
                                     variable->getValueType());
      IRBuilder<> builder(&*function->getEntryBlock().begin());
      Value *base = services.call(builder, "rotaSimtSharedMemory",
                                  builder.getPtrTy(), {});
      Value *address = builder.CreateAddrSpaceCast(
          builder.CreateConstGEP1_64(builder.getInt8Ty(), base, offset),
          variable->getType());
      for (Use *use : places)
        use->set(address);
    }
    variable->eraseFromParent();
  }
  return sizes;
}

} // namespace rota::lowering

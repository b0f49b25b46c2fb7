// SPDX-License-Identifier: Apache-2.0
//
// The steps in order, and what surrounds them: a copy of the module, entries
// and descriptions of its kernels.
#include "lowering/simt/HostKernels.h"

#include "lowering/cpu/Analyses.h"
#include "lowering/simt/Steps.h"
#include "runtime/device/simt/Services.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/ScalarizeMaskedMemIntrin.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <map>

using namespace llvm;

namespace rota::lowering {

static std::optional<GpuSynchronization> kindOf(const Instruction &candidate) {
  if (auto *assembly = dyn_cast<CallInst>(&candidate);
      assembly && assembly->isInlineAsm())
    return cast<InlineAsm>(assembly->getCalledOperand())
                   ->getAsmString()
                   .starts_with("wgmma.wait_group")
               ? std::optional(GpuSynchronization::WarpgroupWait)
               : std::nullopt;
  auto *call = dyn_cast<IntrinsicInst>(&candidate);
  if (!call)
    return std::nullopt;
  switch (call->getIntrinsicID()) {
  case Intrinsic::nvvm_barrier_cta_sync_aligned_all:
    return GpuSynchronization::Barrier;
  case Intrinsic::nvvm_bar_warp_sync:
    return GpuSynchronization::WarpBarrier;
  case Intrinsic::nvvm_cp_async_wait_group:
    return GpuSynchronization::CopyWait;
  default:
    return std::nullopt;
  }
}

unsigned countSynchronizations(const Module &gpu, GpuSynchronization kind) {
  unsigned count = 0;
  for (const Function &function : gpu)
    for (const Instruction &instruction : instructions(function))
      count += kindOf(instruction) == kind;
  return count;
}

uint32_t leftOutNumber(WaitingInstruction instruction) {
  return static_cast<uint32_t>(instruction.first) << 16 |
         (instruction.second + 1);
}

/// Moves each instruction by which threads wait into a branch that is taken
/// where the variable does not name it.
static void letLeaveOut(Module &module) {
  auto *type = Type::getInt32Ty(module.getContext());
  auto *variable = new GlobalVariable(
      module, type, /*isConstant=*/false, GlobalValue::ExternalLinkage,
      ConstantInt::get(type, 0), kLeftOutVariable);
  SmallVector<std::pair<Instruction *, WaitingInstruction>> all;
  std::map<GpuSynchronization, unsigned> counts;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (auto kind = kindOf(instruction))
        all.push_back({&instruction, {*kind, counts[*kind]++}});
  for (auto [instruction, name] : all) {
    IRBuilder<> builder(instruction);
    Value *isNeeded =
        builder.CreateICmpNE(builder.CreateLoad(type, variable),
                             builder.getInt32(leftOutNumber(name)));
    instruction->moveBefore(
        SplitBlockAndInsertIfThen(isNeeded, instruction->getIterator(),
                                  /*Unreachable=*/false)
            ->getIterator());
  }
}

/// Masked loads and stores become branches around plain ones, as on a GPU.
static void expandMaskedAccesses(Module &module) {
  PassBuilder builder;
  Analyses analyses(builder);
  createModuleToFunctionPassAdaptor(ScalarizeMaskedMemIntrinPass())
      .run(module, analyses.modules);
}

/// Attributes and metadata of NVPTX say things that the emulator does not keep:
/// for example that no other thread writes what a thread reads.
static void dropPromises(Function &function) {
  function.setAttributes(AttributeList());
  for (Instruction &instruction : instructions(function)) {
    instruction.dropUnknownNonDebugMetadata();
    if (auto *call = dyn_cast<CallBase>(&instruction);
        call && !isa<IntrinsicInst>(call))
      call->setAttributes(AttributeList());
  }
}

static LogicalResult checkArguments(mlir::Location loc,
                                    const Function &kernel) {
  for (const Argument &argument : kernel.args())
    if (argument.hasByValAttr())
      return mlir::emitError(loc, "expected arguments in registers, got "
                                  "argument ")
             << argument.getArgNo() << " in memory in kernel '"
             << kernel.getName() << "'";
  return success();
}

/// The emulator has no order of memory between threads that no barrier orders.
static LogicalResult checkInstructions(mlir::Location loc,
                                       const Function &function) {
  for (const Instruction &instruction : instructions(function))
    if (instruction.isAtomic() && !isa<FenceInst>(instruction))
      return unknownInstruction(
          loc, instruction,
          std::string(isa<LoadInst, StoreInst>(instruction) ? "atomic " : "") +
              instruction.getOpcodeName());
  return success();
}

/// The emulator's threads have stacks of a fixed size.
static LogicalResult checkStack(mlir::Location loc, const Function &function) {
  uint64_t bytes = 0;
  for (const Instruction &instruction : instructions(function))
    if (auto *variable = dyn_cast<AllocaInst>(&instruction)) {
      std::optional<TypeSize> size =
          variable->getAllocationSize(function.getDataLayout());
      if (!size)
        return unknownInstruction(loc, *variable, "alloca of a variable size");
      bytes += size->getFixedValue();
    }
  if (bytes > ROTA_SIMT_LOCAL_BYTES)
    return mlir::emitError(loc, "expected at most ")
           << int64_t(ROTA_SIMT_LOCAL_BYTES)
           << " bytes of variables in a thread, got " << bytes << " in '"
           << function.getName() << "'";
  return success();
}

static LogicalResult rewrite(mlir::Location loc, Function &function,
                             ServiceCalls &services, bool checks) {
  dropPromises(function);
  if (failed(expandAssembly(loc, function, checks ? &services : nullptr)) ||
      failed(checkInstructions(loc, function)))
    return failure();
  if (checks)
    addChecks(function, services);
  if (failed(emulateIntrinsics(loc, function, services)))
    return failure();
  if (failed(fixArithmetic(loc, function)))
    return failure();
  return checkStack(loc, function);
}

/// Renames the kernel, and makes a function of its old name that takes the
/// addresses of its arguments.
static Function *makeEntry(Function &kernel) {
  std::string name = kernel.getName().str();
  kernel.setName(name + ".thread");
  kernel.setCallingConv(CallingConv::C);
  kernel.setLinkage(GlobalValue::InternalLinkage);
  LLVMContext &context = kernel.getContext();
  IRBuilder<> builder(context);
  auto *type = FunctionType::get(builder.getVoidTy(), {builder.getPtrTy()},
                                 /*isVarArg=*/false);
  Function *entry = Function::Create(type, GlobalValue::ExternalLinkage, name,
                                     *kernel.getParent());
  builder.SetInsertPoint(BasicBlock::Create(context, "", entry));
  SmallVector<Value *> arguments;
  for (Argument &argument : kernel.args()) {
    Value *address = builder.CreateLoad(
        builder.getPtrTy(),
        builder.CreateConstGEP1_32(builder.getPtrTy(), entry->getArg(0),
                                   argument.getArgNo()));
    arguments.push_back(builder.CreateLoad(argument.getType(), address));
  }
  builder.CreateCall(&kernel, arguments);
  builder.CreateRetVoid();
  return entry;
}

static GlobalVariable *makeText(Module &module, StringRef text) {
  auto *bytes = ConstantDataArray::getString(module.getContext(), text);
  return new GlobalVariable(module, bytes->getType(), /*isConstant=*/true,
                            GlobalValue::PrivateLinkage, bytes);
}

static GlobalVariable *makeSites(Module &module, ArrayRef<std::string> sites) {
  SmallVector<Constant *> texts;
  for (const std::string &site : sites)
    texts.push_back(makeText(module, site));
  auto *type =
      ArrayType::get(PointerType::get(module.getContext(), 0), texts.size());
  return new GlobalVariable(module, type, /*isConstant=*/true,
                            GlobalValue::PrivateLinkage,
                            ConstantArray::get(type, texts));
}

static GlobalVariable *makeArgumentBytes(const Function &kernel,
                                         Module &module) {
  SmallVector<uint32_t> bytes;
  for (const Argument &argument : kernel.args())
    bytes.push_back(
        module.getDataLayout().getTypeStoreSize(argument.getType()));
  Constant *value = ConstantDataArray::get(module.getContext(), bytes);
  return new GlobalVariable(module, value->getType(), /*isConstant=*/true,
                            GlobalValue::PrivateLinkage, value);
}

/// The most threads of a block by the kernel's launch bound, or 0.
static uint32_t mostThreadsOf(const Function &kernel) {
  for (StringRef name : {"nvvm.reqntid", "nvvm.maxntid"}) {
    SmallVector<StringRef> sizes;
    kernel.getFnAttribute(name).getValueAsString().split(sizes, ',', -1,
                                                         /*KeepEmpty=*/false);
    uint32_t threads = sizes.empty() ? 0 : 1;
    for (StringRef size : sizes)
      if (uint32_t count = 0; to_integer(size.trim(), count))
        threads *= count;
    if (threads != 0)
      return threads;
  }
  return 0;
}

/// A constant with the fields of RotaSimtKernel.
static void describe(Function &kernel, GlobalVariable &sites,
                     ServiceCalls &services, uint64_t sharedBytes, bool checks,
                     uint32_t mostThreads) {
  Module &module = *kernel.getParent();
  Function &entry = *makeEntry(kernel);
  Constant *fields[] = {&entry,
                        makeText(module, entry.getName()),
                        &sites,
                        services.i64(services.getSites().size()),
                        services.i64(sharedBytes),
                        services.i32(checks),
                        services.i32(kernel.arg_size()),
                        makeArgumentBytes(kernel, module),
                        services.i32(mostThreads)};
  Constant *description = ConstantStruct::getAnon(fields);
  new GlobalVariable(module, description->getType(), /*isConstant=*/true,
                     GlobalValue::ExternalLinkage, description,
                     descriptionSymbol(entry.getName()));
}

std::string descriptionSymbol(StringRef kernel) {
  return (kernel + ".simt").str();
}

/// Removes the rest of NVPTX: the module's target, metadata, declarations.
static void retarget(Module &module, const TargetMachine &host) {
  StripDebugInfo(module);
  if (NamedMDNode *annotations = module.getNamedMetadata("nvvm.annotations"))
    annotations->eraseFromParent();
  for (Function &function : make_early_inc_range(module))
    if (function.isDeclaration() && function.use_empty())
      function.eraseFromParent();
  module.setTargetTriple(host.getTargetTriple());
  module.setDataLayout(host.createDataLayout());
  for (Function &function : module)
    if (!function.isDeclaration()) {
      function.addFnAttr(Attribute::NoUnwind);
      function.addFnAttr("target-cpu", host.getTargetCPU());
      function.addFnAttr("target-features", host.getTargetFeatureString());
    }
}

FailureOr<std::unique_ptr<Module>>
makeHostKernels(mlir::Location loc, const Module &gpu,
                const TargetMachine &host, const HostKernelOptions &options) {
  std::unique_ptr<Module> module = CloneModule(gpu);
  if (options.mayLeaveOut)
    letLeaveOut(*module);
  expandMaskedAccesses(*module);
  ServiceCalls services(*module);
  SmallVector<Function *> kernels, functions;
  for (Function &function : *module) {
    if (!function.isDeclaration())
      functions.push_back(&function);
    if (function.getCallingConv() == CallingConv::PTX_Kernel)
      kernels.push_back(&function);
  }
  for (Function *kernel : kernels)
    if (failed(checkArguments(loc, *kernel)))
      return failure();
  for (Function *function : functions)
    if (failed(rewrite(loc, *function, services, options.checks)))
      return failure();
  FailureOr<SharedSizes> sizes = placeSharedMemory(loc, *module, services);
  if (failed(sizes))
    return failure();
  GlobalVariable *sites = makeSites(*module, services.getSites());
  for (Function *kernel : kernels)
    describe(*kernel, *sites, services, sizes->lookup(kernel), options.checks,
             mostThreadsOf(*gpu.getFunction(kernel->getName())));
  retarget(*module, host);
  std::string broken;
  raw_string_ostream stream(broken);
  if (verifyModule(*module, &stream))
    return mlir::emitError(loc, "expected valid host code for GPU kernels: ")
           << broken;
  return module;
}

} // namespace rota::lowering

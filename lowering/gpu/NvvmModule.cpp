// SPDX-License-Identifier: Apache-2.0
//
// LLVM's side of GPU kernels: translation, O3, PTX.
#include "lowering/gpu/NvvmModule.h"

#include "lowering/cpu/Analyses.h"
#include "lowering/gpu/GpuBuilder.h"
#include "lowering/gpu/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;

namespace rota::lowering {
namespace {

/// The version of PTX that code for a chip needs. A version that is too low
/// for the chip ends the process.
struct Chip {
  StringRef name, features;
};

constexpr Chip kChips[] = {{"sm_80", "+ptx80"},
                           {"sm_90", "+ptx80"},
                           {"sm_90a", "+ptx80"},
                           {"sm_100", "+ptx86"},
                           {"sm_100a", "+ptx86"}};

std::unique_ptr<llvm::TargetMachine> createMachine(const Chip &chip) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    llvm::report_fatal_error("expected an LLVM with the target NVPTX: " +
                             Twine(error));
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, chip.name, chip.features, llvm::TargetOptions(), std::nullopt,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PassBuilder builder(&machine);
  Analyses analyses(builder);
  // A lighter pipeline saves a tenth of the time and costs registers.
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, analyses.modules);
}

/// Code generation would leave `.extern .func`, which fails when it is loaded.
LogicalResult checkCalls(const llvm::Module &module, Location loc) {
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic() &&
        !function.use_empty())
      return emitError(loc, "expected kernels that call no library, got a call "
                            "of '")
             << function.getName() << "'";
  return success();
}

/// The chip that has instructions of warpgroups.
constexpr StringRef kWarpgroupChip = "sm_90a";

/// Leaves each kernel in the form that `chip` has, under its own name.
void selectForms(llvm::Module &module, StringRef chip) {
  bool hasWarpgroups = chip == kWarpgroupChip;
  for (llvm::Function &form : llvm::make_early_inc_range(module)) {
    StringRef name = form.getName();
    if (!name.consume_back(kWarpgroupForm))
      continue;
    llvm::Function *common = module.getFunction(name);
    if (!hasWarpgroups) {
      form.eraseFromParent();
      continue;
    }
    form.takeName(common);
    common->eraseFromParent();
  }
}

} // namespace

std::unique_ptr<llvm::Module> translateForGpu(gpu::GPUModuleOp source,
                                              llvm::LLVMContext &context,
                                              StringRef chip) {
  MLIRContext *mlirContext = source.getContext();
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  mlirContext->appendDialectRegistry(registry);

  OwningOpRef<ModuleOp> copy = ModuleOp::create(source.getLoc());
  auto kernels = cast<gpu::GPUModuleOp>(source->clone());
  copy->push_back(kernels);
  PassManager manager(mlirContext, ModuleOp::getOperationName());
  buildGpuToNvvmPipeline(manager);
  if (failed(manager.run(*copy)))
    return nullptr;
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(kernels, context, source.getName());
  if (!module) {
    emitError(source.getLoc(), "expected kernels of ops that a GPU has");
    return nullptr;
  }
  if (!chip.empty())
    selectForms(*module, chip);
  // Nothing else here depends on the chip: the least one serves all.
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(kChips[0]);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  optimize(*module, *machine);
  if (failed(checkCalls(*module, source.getLoc())))
    return nullptr;
  return module;
}

static const Chip *findChip(StringRef name) {
  const Chip *chip = llvm::find_if(
      kChips, [&](const Chip &known) { return known.name == name; });
  return chip == std::end(kChips) ? nullptr : chip;
}

static std::string expectedChip(ArrayRef<StringRef> known, StringRef got) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "expected a chip out of ";
  llvm::interleaveComma(known, stream,
                        [&](StringRef name) { stream << "'" << name << "'"; });
  stream << ", got '" << got << "'";
  return text;
}

std::string unknownChip(StringRef name) {
  SmallVector<StringRef> names;
  for (const Chip &known : kChips)
    names.push_back(known.name);
  return findChip(name) ? "" : expectedChip(names, name);
}

ArrayRef<StringRef> trainerChips() {
  static constexpr StringRef chips[] = {"sm_80", kWarpgroupChip, "sm_100"};
  return chips;
}

std::string unfitForTrainers(StringRef chip) {
  static constexpr StringRef known[] = {"sm_80", "sm_90", kWarpgroupChip,
                                        "sm_100"};
  return llvm::is_contained(known, chip) ? "" : expectedChip(known, chip);
}

FailureOr<std::string> emitPtx(Location loc, const llvm::Module &module,
                               StringRef name) {
  const Chip *chip = findChip(name);
  if (!chip)
    return emitError(loc, unknownChip(name));
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
  llvm::StripDebugInfo(*copy);
  selectForms(*copy, name);
  SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager codegen;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(*chip);
  if (machine->addPassesToEmitFile(codegen, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    return emitError(loc, "expected a target that writes PTX");
  codegen.run(*copy);
  return std::string(text.begin(), text.end());
}

} // namespace rota::lowering

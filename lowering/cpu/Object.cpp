// SPDX-License-Identifier: Apache-2.0
//
// LLVM's side: target machine, the few passes that explicit vector code needs,
// and the object file, all in memory.
#include "lowering/cpu/Object.h"
#include "lowering/cpu/Analyses.h"
#include "runtime/ProcessorAbi.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

namespace rota::lowering {

/// The host's features as LLVM writes them: "+avx2,-sse4a".
static std::string hostFeatures() {
  SmallVector<std::string> features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    features.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(features);
  return llvm::join(features, ",");
}

FailureOr<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(Location loc, const TargetOptions &options) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return emitError(loc, "expected a target that LLVM knows, got '")
           << triple.str() << "': " << error;
  bool native = options.cpu == "native";
  std::string cpu =
      native ? std::string(llvm::sys::getHostCPUName()) : options.cpu;
  std::unique_ptr<llvm::MCSubtargetInfo> known(
      target->createMCSubtargetInfo(triple, "", ""));
  if (!known || !known->isCPUStringValid(cpu))
    return emitError(loc,
                     "'target-cpu': expected a processor that LLVM knows for ")
           << triple.str() << ", got '" << cpu << "'";
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, cpu, native ? hostFeatures() : "", llvm::TargetOptions(),
      llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
  if (!machine)
    return emitError(loc, "expected code generation for ")
           << triple.str() << ", got none";
  return machine;
}

std::string processorFeatures(const llvm::TargetMachine &machine) {
  if (!machine.getTargetTriple().isX86())
    return "";
  const llvm::MCSubtargetInfo &info = *machine.getMCSubtargetInfo();
  SmallVector<StringRef> features;
#define X(feature)                                                             \
  if (info.checkFeatures("+" feature))                                         \
    features.push_back(feature);
  ROTA_PROCESSOR_FEATURES(X)
#undef X
  return llvm::join(features, ",");
}

unsigned vectorBits(const llvm::TargetMachine &machine) {
  const llvm::MCSubtargetInfo &info = *machine.getMCSubtargetInfo();
  if (!machine.getTargetTriple().isX86())
    return 128;
  if (info.checkFeatures("+avx512f"))
    return 512;
  return info.checkFeatures("+avx") ? 256 : 128;
}

PairProducts pairProducts(const llvm::TargetMachine &machine) {
  const llvm::MCSubtargetInfo &info = *machine.getMCSubtargetInfo();
  if (!machine.getTargetTriple().isX86() || !info.checkFeatures("+avx512bf16"))
    return PairProducts::None;
  if (info.checkFeatures("+amx-tile,+amx-bf16"))
    return PairProducts::Tiles;
  // AMD's processors do vdpbf16ps at the rate of f32 multiply-adds, which is
  // twice the products. Sapphire Rapids does it at a quarter of that rate.
  bool pays = machine.getTargetCPU().starts_with("znver");
  return pays ? PairProducts::Native : PairProducts::None;
}

/// Cleans up what explicit vector code leaves: addresses, invariants, branches.
/// O2 takes three times as long for code of the same speed.
static LogicalResult optimize(llvm::Module &module,
                              llvm::TargetMachine &machine, Location loc) {
  llvm::PassBuilder builder(&machine);
  Analyses analyses(builder);
  llvm::ModulePassManager passes;
  llvm::Error error = builder.parsePassPipeline(
      passes, "function(sroa,early-cse,instcombine<no-verify-fixpoint>,"
              "simplifycfg,loop-mssa(loop-rotate,licm),"
              "instcombine<no-verify-fixpoint>,early-cse)");
  if (error)
    return emitError(loc) << llvm::toString(std::move(error));
  passes.run(module, analyses.modules);
  return success();
}

FailureOr<std::unique_ptr<llvm::Module>>
translateToLLVM(ModuleOp module, llvm::LLVMContext &context,
                llvm::TargetMachine &machine) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);
  std::unique_ptr<llvm::Module> translated =
      translateModuleToLLVMIR(module, context, "rota");
  if (!translated)
    return emitError(module.getLoc(), "expected a module of llvm ops");
  translated->setTargetTriple(machine.getTargetTriple());
  translated->setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : *translated)
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", machine.getTargetCPU());
      function.addFnAttr("target-features", machine.getTargetFeatureString());
    }
  if (failed(optimize(*translated, machine, module.getLoc())))
    return failure();
  return translated;
}

std::string emitLLVM(const llvm::Module &module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

FailureOr<std::string> emitObject(Location loc, llvm::Module &module,
                                  llvm::TargetMachine &machine) {
  SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager codegen;
  if (machine.addPassesToEmitFile(codegen, stream, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return emitError(loc, "expected a target that writes object files, got ")
           << machine.getTargetTriple().str();
  codegen.run(module);
  return std::string(bytes.begin(), bytes.end());
}

FailureOr<std::string> emitObject(ModuleOp module,
                                  llvm::TargetMachine &machine) {
  llvm::LLVMContext context;
  auto translated = translateToLLVM(module, context, machine);
  if (failed(translated))
    return failure();
  return emitObject(module.getLoc(), **translated, machine);
}

} // namespace rota::lowering

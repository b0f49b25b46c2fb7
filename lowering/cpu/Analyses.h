// SPDX-License-Identifier: Apache-2.0
#ifndef ROTA_LOWERING_CPU_ANALYSES_H
#define ROTA_LOWERING_CPU_ANALYSES_H

#include "llvm/Passes/PassBuilder.h"

namespace rota::lowering {

/// The analyses that passes over LLVM IR ask for.
struct Analyses {
  explicit Analyses(llvm::PassBuilder &builder) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_CPU_ANALYSES_H

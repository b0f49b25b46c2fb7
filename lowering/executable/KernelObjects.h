// SPDX-License-Identifier: Apache-2.0
//
// Kernels as object files of their own, which trainers share.
#ifndef ROTA_LOWERING_EXECUTABLE_KERNELOBJECTS_H
#define ROTA_LOWERING_EXECUTABLE_KERNELOBJECTS_H

#include "lowering/kernels/KernelPlan.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace rota::lowering {

/// A symbol that the linker defines, and one of an object that it stands for.
using Alias = std::pair<std::string, std::string>;

struct KernelObjects {
  std::map<std::string, std::string> objects; // bytes of files, by symbol
  std::vector<Alias> aliases;                 // kernels by their names
};

/// Makes an object file of each CPU kernel of `library`, which is empty
/// afterwards. An object's symbol follows from the code alone: kernels with
/// equal code are one, whatever their names.
llvm::FailureOr<KernelObjects> emitCpuKernels(KernelLibrary &library,
                                              llvm::TargetMachine &machine);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_KERNELOBJECTS_H

// SPDX-License-Identifier: Apache-2.0
//
// Calls of the emulator's services, and the sites they name.
#ifndef ROTA_LOWERING_SIMT_SERVICECALLS_H
#define ROTA_LOWERING_SIMT_SERVICECALLS_H

#include "llvm/IR/IRBuilder.h"
#include <map>
#include <string>
#include <vector>

namespace rota::lowering {

class ServiceCalls {
public:
  explicit ServiceCalls(llvm::Module &module);

  /// Calls the service at the builder's place; pointers become generic ones.
  llvm::Value *call(llvm::IRBuilder<> &builder, llvm::StringRef service,
                    llvm::Type *result, llvm::ArrayRef<llvm::Value *> operands);

  /// The number of the instruction's place in the source, as a constant.
  /// `kind` is a word on what it does: "load".
  llvm::Value *site(const llvm::Instruction &instruction, llvm::StringRef kind);
  /// The texts of all sites: RotaSimtKernel::sites.
  llvm::ArrayRef<std::string> getSites() const { return sites; }

  /// Memory on the stack of the function for one value of that type, for use
  /// around a single call.
  llvm::AllocaInst *slot(llvm::Function &function, llvm::Type *type);

  llvm::ConstantInt *i32(uint32_t value) const;
  llvm::ConstantInt *i64(uint64_t value) const;

private:
  llvm::Module &module;
  std::vector<std::string> sites;
  std::map<std::pair<llvm::Function *, llvm::Type *>, llvm::AllocaInst *> slots;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_SIMT_SERVICECALLS_H

// SPDX-License-Identifier: Apache-2.0
#include "tools/compiler/ThreadedContext.h"
#include "runtime/threads/StartThread.h"

#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"

using mlir::MLIRContext;

namespace rota {

std::unique_ptr<MLIRContext>
threadedContext(const mlir::DialectRegistry &registry) {
  auto most = int(llvm::hardware_concurrency().compute_thread_count());
  std::string refusal = refusalOf("compiling", most);
  if (!refusal.empty())
    llvm::errs() << "warning: " << refusal << "; goes on without\n";
  return std::make_unique<MLIRContext>(
      registry, refusal.empty() ? MLIRContext::Threading::ENABLED
                                : MLIRContext::Threading::DISABLED);
}

} // namespace rota

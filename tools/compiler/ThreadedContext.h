// SPDX-License-Identifier: Apache-2.0
//
// A context of MLIR with threads, where the system grants them.
#ifndef ROTA_TOOLS_COMPILER_THREADEDCONTEXT_H
#define ROTA_TOOLS_COMPILER_THREADEDCONTEXT_H

#include "mlir/IR/MLIRContext.h"

#include <memory>

namespace rota {

/// A context whose threads MLIR starts: its pool ends the process when the
/// system refuses one, so they are asked for first. Where it refuses one, there
/// is a warning, and the context has none.
std::unique_ptr<mlir::MLIRContext>
threadedContext(const mlir::DialectRegistry &registry);

} // namespace rota

#endif // ROTA_TOOLS_COMPILER_THREADEDCONTEXT_H

// SPDX-License-Identifier: Apache-2.0
//
// The dialects of text IR.
#ifndef ROTA_TOOLS_DIALECTS_H
#define ROTA_TOOLS_DIALECTS_H

#include "ir/pipe/Pipe.h"
#include "ir/rota/Rota.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace rota {

/// Every dialect of any level, with the interfaces of arith and math.
inline void registerAllLevels(mlir::DialectRegistry &registry) {
  registry.insert<mlir::rota::RotaDialect, mlir::pipe::PipeDialect,
                  mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::math::MathDialect, mlir::LLVM::LLVMDialect,
                  mlir::scf::SCFDialect, mlir::vector::VectorDialect,
                  mlir::gpu::GPUDialect, mlir::NVVM::NVVMDialect>();
  mlir::rota::registerArithModels(registry);
}

} // namespace rota

#endif // ROTA_TOOLS_DIALECTS_H

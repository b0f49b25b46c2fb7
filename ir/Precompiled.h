// SPDX-License-Identifier: Apache-2.0
//
// Headers of MLIR that most files of the compiler include, compiled once. Only
// upstream headers: an edit of one of ours recompiles its users alone.
#ifndef ROTA_IR_PRECOMPILED_H
#define ROTA_IR_PRECOMPILED_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#endif // ROTA_IR_PRECOMPILED_H

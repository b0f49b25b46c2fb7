// SPDX-License-Identifier: Apache-2.0
//
// All ranks of a mesh in lockstep.
#include "test/interpreter/MeshRun.h"

using namespace rota::interpreter;
using llvm::failed;
using llvm::failure;
using llvm::FailureOr;
using llvm::SmallVector;

/// A frame for each rank, with its arguments set; fails where `runFunction`
/// would.
static FailureOr<std::vector<Frame>>
enter(mlir::func::FuncOp function, llvm::ArrayRef<Parts> arguments,
      llvm::MutableArrayRef<Environment> environments, const Options &options) {
  std::vector<Frame> frames;
  for (auto [rank, environment] : llvm::enumerate(environments)) {
    SmallVector<Tensor> own;
    for (const Parts &parts : arguments)
      own.push_back(parts[rank]);
    if (failed(verifyCall(function, own)))
      return failure();
    Frame &frame = frames.emplace_back(options, environment);
    for (auto [argument, tensor] :
         llvm::zip_equal(function.getArguments(), own))
      frame.set(argument, std::move(tensor));
  }
  return frames;
}

FailureOr<SmallVector<Parts>> rota::interpreter::runOnMesh(
    mlir::func::FuncOp function, llvm::ArrayRef<Parts> arguments,
    llvm::MutableArrayRef<Environment> environments, const Options &options) {
  mlir::rota::MeshAttr mesh = mlir::rota::meshOf(function);
  assert(int64_t(environments.size()) == mesh.getRanks() &&
         "an environment for each rank");
  auto frames = enter(function, arguments, environments, options);
  if (failed(frames))
    return failure();
  mlir::Block &block = function.getBody().front();
  for (mlir::Operation &op : block.without_terminator()) {
    if (runCollective(&op, mesh, *frames))
      continue;
    for (Frame &frame : *frames)
      if (failed(runOp(&op, frame)))
        return failure();
  }
  SmallVector<Parts> results;
  for (mlir::Value value : block.getTerminator()->getOperands()) {
    Parts &parts = results.emplace_back();
    for (const Frame &frame : *frames)
      parts.push_back(frame.get(value));
  }
  return results;
}

FailureOr<SmallVector<Parts>>
rota::interpreter::runOnMesh(mlir::func::FuncOp function,
                             llvm::ArrayRef<Parts> arguments,
                             const Options &options) {
  std::vector<Environment> environments(
      mlir::rota::meshOf(function).getRanks());
  return runOnMesh(function, arguments, environments, options);
}

// SPDX-License-Identifier: Apache-2.0
//
// Residuals and data by the positions that ir/rota/Model.h gives them.
#include "passes/shard/propagation/ResidualEdges.h"

#include "ir/rota/Model.h"

using namespace mlir;
using namespace mlir::rota;

static func::FuncOp functionIn(Operation *table, StringRef name) {
  return llvm::dyn_cast_or_null<func::FuncOp>(
      SymbolTable::lookupSymbolIn(table, name));
}

/// Results of `from` from `result` on are arguments of `to` from `argument` on,
/// as far as both have the same types.
static void append(SmallVectorImpl<ResidualEdge> &edges, func::FuncOp from,
                   unsigned result, func::FuncOp to, unsigned argument) {
  if (!from || !to)
    return;
  for (; result < from.getNumResults() && argument < to.getNumArguments() &&
         from.getResultTypes()[result] == to.getArgumentTypes()[argument];
       ++result, ++argument)
    edges.push_back({from, result, to, argument});
}

SmallVector<ResidualEdge> rota::residualEdgesIn(Operation *table) {
  SmallVector<ResidualEdge> edges;
  func::FuncOp forward = functionIn(table, function::forward);
  func::FuncOp input = functionIn(table, function::backwardInput);
  func::FuncOp weight = functionIn(table, function::backwardWeight);
  append(edges, forward, 1, functionIn(table, function::backward), 1);
  append(edges, forward, 1, input, 1);
  append(edges, forward, 1, weight, 1);
  // The cotangent's place in one is where cotangent residuals begin in the
  // other.
  if (input)
    append(edges, input, 1, weight, input.getNumArguments() - 1);
  append(edges, functionIn(table, function::lossBackwardInput), 3,
         functionIn(table, function::lossBackwardWeight), 2);
  return edges;
}

SmallVector<SharedData> rota::sharedDataIn(Operation *table) {
  SmallVector<SharedData> shared;
  auto share = [&](StringRef first, unsigned firstArgument, StringRef second,
                   unsigned secondArgument) {
    func::FuncOp a = functionIn(table, first), b = functionIn(table, second);
    if (a && b && firstArgument < a.getNumArguments() &&
        secondArgument < b.getNumArguments() &&
        a.getArgumentTypes()[firstArgument] ==
            b.getArgumentTypes()[secondArgument])
      shared.push_back({a, firstArgument, b, secondArgument});
  };
  share(function::embed, 0, function::embedBackward, 0);
  for (StringRef name : {function::lossBackward, function::lossBackwardInput,
                         function::lossBackwardWeight})
    share(function::loss, 1, name, 1);
  share(function::loss, 1, function::lossWeight, 0);
  return shared;
}

// SPDX-License-Identifier: Apache-2.0
//
// A model whose functions hold local shapes, lowered to tasks, with changes of
// its text.
#ifndef ROTA_TEST_LOWERING_EXECUTABLE_LOWEREDMODEL_H
#define ROTA_TEST_LOWERING_EXECUTABLE_LOWEREDMODEL_H

#include "lowering/executable/Tasks.h"
#include "lowering/kernels/Passes.h"
#include "test/interpreter/TestModule.h"

namespace rota::test {

using interpreter::TestModule;
using lowering::KernelLibrary;

/// A layer of two products with its middle divided over `tensor`, parameters
/// stored over `fsdp`, and an optimizer over `data` too.
inline constexpr const char *kModel = R"(
rota.mesh <data = 2, fsdp = 2, tensor = 4>
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @up : tensor<8x2xf32> axes ["in", "out"] init #rota.constant<value = 1.0> placement <whole [8, 8] compute <[[], [tensor]] unreduced [data, fsdp]> storage <[[fsdp], [tensor]]> optimizer <[[fsdp, data], [tensor]]>>
    rota.param @down : tensor<2x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0> placement <whole [8, 8] compute <[[tensor], []] unreduced [data, fsdp]> storage <[[tensor], [fsdp]]> optimizer <[[tensor], [fsdp]]>>
    func.func @forward(%x: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x2xf32> {rota.offload}, tensor<2x8xf32>, tensor<i32>, tensor<i32>) {
      %u = rota.read @up : tensor<8x2xf32>
      %d = rota.read @down : tensor<2x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %u : (tensor<2x8xf32>, tensor<8x2xf32>) -> tensor<2x2xf32>
      %p = rota.einsum "bk,kn->bn" %y, %d : (tensor<2x2xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
      %z = rota.all_reduce sum %p axes [<tensor>] reason "'z' is a sum over 'tensor'" : tensor<2x8xf32>
      %q = rota.einsum "bk,kn->bn" %y, %d : (tensor<2x2xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
      %s = rota.reduce_scatter %q dim = 1 axes [<tensor>] reason "'s' is a sum over 'tensor'" : tensor<2x8xf32> -> tensor<2x2xf32>
      %t = rota.all_gather %s dim = 1 axes [<tensor>] reason "'t' is whole" : tensor<2x2xf32> -> tensor<2x8xf32>
      %o = rota.shard_offset axes [<tensor>] factor = 8 : tensor<i32>
      %v = rota.shard_offset axes [<tensor>] factor = 16 : tensor<i32>
      return %z, %y, %t, %o, %v : tensor<2x8xf32>, tensor<2x2xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>
    }
    func.func @backward(%x: tensor<2x8xf32>, %y: tensor<2x2xf32>, %t: tensor<2x8xf32>, %o: tensor<i32>, %v: tensor<i32>, %dz: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %u = rota.read @up : tensor<8x2xf32>
      %d = rota.read @down : tensor<2x8xf32>
      %gd = rota.einsum "bk,bn->kn" %y, %dz : (tensor<2x2xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
      rota.accumulate @down, %gd : tensor<2x8xf32>
      %dy = rota.einsum "bn,kn->bk" %dz, %d : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x2xf32>
      %gu = rota.einsum "bk,bn->kn" %x, %dy : (tensor<2x8xf32>, tensor<2x2xf32>) -> tensor<8x2xf32>
      rota.accumulate @up, %gu : tensor<8x2xf32>
      %p = rota.einsum "bn,kn->bk" %dy, %u : (tensor<2x2xf32>, tensor<8x2xf32>) -> tensor<2x8xf32>
      %dx = rota.all_reduce sum %p axes [<tensor>] reason "'dx' is a sum over 'tensor'" : tensor<2x8xf32>
      return %dx : tensor<2x8xf32>
    }
  }
}
func.func @embed(%x: tensor<2x8xf32> {rota.sharding = #rota.sharding<[[data, fsdp], []]>}) -> tensor<2x8xf32> {
  return %x : tensor<2x8xf32>
}
func.func @embed_backward(%x: tensor<2x8xf32>, %dx: tensor<2x8xf32>) {
  return
}
func.func @loss(%x: tensor<2x8xf32>, %t: tensor<2x8xf32> {rota.sharding = #rota.sharding<[[data, fsdp], []]>}) -> (tensor<f32> {rota.sharding = #rota.sharding<[] unreduced [data, fsdp]>}, tensor<f32> {rota.sharding = #rota.sharding<[] unreduced [data, fsdp]>}) {
  %0 = arith.mulf %x, %t : tensor<2x8xf32>
  %sum = rota.reduce sum %0 dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward(%x: tensor<2x8xf32>, %t: tensor<2x8xf32>) -> (tensor<f32>, tensor<f32>, tensor<2x8xf32>) {
  %0 = arith.mulf %x, %t : tensor<2x8xf32>
  %sum = rota.reduce sum %0 dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
  return %sum, %sum, %t : tensor<f32>, tensor<f32>, tensor<2x8xf32>
}
func.func @logits(%x: tensor<2x8xf32>) -> (tensor<i32> {rota.sharding = #rota.sharding<[]>}) {
  %offset = rota.shard_offset axes [<tensor>] factor = 16 : tensor<i32>
  return %offset : tensor<i32>
}
)";

using Changes = std::vector<std::pair<llvm::StringRef, llvm::StringRef>>;

inline std::string change(std::string text, const Changes &changes) {
  for (auto [from, to] : changes)
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  return text;
}

/// The model, with each first text of a pair replaced by the second, lowered.
struct Lowered {
  explicit Lowered(const Changes &changes = {})
      : module(change(kModel, changes)) {
    lowering::registerKernelsPasses();
    if (!module || failed(module.run("form-kernels"))) {
      errors = module.takeDiagnostics();
      return;
    }
    library.emplace(module.getContext(), 512);
    auto lowered = lowering::lowerTasks(module.get(), *library);
    errors = module.takeDiagnostics();
    if (failed(lowered))
      return;
    tasks = std::move(lowered->tasks);
    layout = std::move(lowered->layout);
  }

  const Program &program() const { return layout.program; }
  const Parameter &parameter(int number) const {
    return layout.program.parameters.at(number);
  }
  const Collective &collective(int number) const {
    return layout.program.collectives.at(number);
  }
  /// The text of a task.
  std::string task(llvm::StringRef name) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    tasks->lookupSymbol(name)->print(stream);
    return text;
  }

  TestModule module;
  std::string errors;
  std::optional<KernelLibrary> library;
  mlir::OwningOpRef<mlir::ModuleOp> tasks;
  memory::ModelLayout layout;
};

} // namespace rota::test

#endif // ROTA_TEST_LOWERING_EXECUTABLE_LOWEREDMODEL_H

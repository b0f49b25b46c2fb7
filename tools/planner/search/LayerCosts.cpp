// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/search/LayerCosts.h"

#include "ir/rota/model/Model.h"
#include "runtime/program/State.h"
#include "tools/planner/ComparePolicies.h"
#include "tools/planner/SilentContext.h"

#include <algorithm>

namespace rota {
namespace {

/// The size of the largest dimension of experts.
int64_t expertsOf(mlir::ModuleOp module) {
  int64_t experts = 0;
  module.walk([&](mlir::rota::ParamOp param) {
    auto shape = mlir::cast<mlir::ShapedType>(param.getType()).getShape();
    for (auto [axis, size] :
         llvm::zip(param.getAxes().getAsValueRange<mlir::StringAttr>(), shape))
      if (axis == "experts")
        experts = std::max(experts, size);
  });
  return experts;
}

/// Adds a parameter's bytes.
void addParameter(const Parameter &p, const Program &program, PartCost &part) {
  auto local = double(partElements(p.shape, p.storageDivision, program.mesh));
  auto owned = double(partElements(p.shape, p.optimizerDivision, program.mesh));
  double each = double(p.stateBytes) / owned; // bytes for an element
  if (p.compute != masterType(p))
    each += double(byteSize(masterType(p)));
  part.stored += local * double(byteSize(p.compute));
  if (!p.isFrozen)
    part.gradients += local * double(byteSize(p.gradient));
  part.optimizer += local * each;
  part.wholeOptimizer += double(elementCount(p)) * each;
  ++part.tensors;
}

/// Adds the parameters of a block, but for those that `embed` has too.
void addBlock(const memory::ParameterBlock &block, const Program &program,
              const memory::ParameterBlock *embed, PartCost &part) {
  for (const auto &entry : block.entries)
    if (!embed || std::ranges::none_of(embed->entries, [&](const auto &other) {
          return other.parameter == entry.parameter;
        }))
      addParameter(program.parameters[entry.parameter], program, part);
}

/// The costs of a chunk, which is one part.
PartCost partOf(const PolicyParts &plan, int chunk, const ChunkCost &cost) {
  const memory::ModelLayout &layout = plan.layout;
  PartCost part;
  part.forward = cost.compute[0];
  part.backward = cost.compute[1];
  part.backwardInput = cost.compute[2];
  part.backwardWeight = cost.compute[3];
  part.stash = double(cost.stash - cost.offloaded);
  part.cotangents = double(cost.cotangents);
  if (chunk == 0) {
    addBlock(layout.embed.block, layout.program, nullptr, part);
  } else if (chunk + 1 == plan.timeline.shape.chunks()) {
    addBlock(layout.loss.block, layout.program, &layout.embed.block, part);
  } else {
    const memory::TaskGroup &kind =
        layout.kinds[plan.chunks[chunk].front().kind];
    if (!kind.offloadsInput)
      part.stash += double(layout.activationBytes);
    addBlock(kind.block, layout.program, nullptr, part);
  }
  return part;
}

/// Reads a plan each of whose chunks is a part.
void readParts(const PolicyParts &plan, LayerCosts &costs) {
  int chunks = plan.timeline.shape.chunks();
  costs.sums.resize(1);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    ChunkCost cost = costOf(plan, chunk);
    PartCost sum = costs.sums.back();
    sum += partOf(plan, chunk, cost);
    costs.sums.push_back(sum);
    if (chunk == 1 || (chunk > 1 && chunk < chunks - 1))
      costs.scratch = chunk == 1
                          ? double(cost.scratch)
                          : std::min(costs.scratch, double(cost.scratch));
  }
  for (const Parameter &p : plan.layout.program.parameters)
    if (p.compute == ElementType::BF16)
      costs.type = ElementType::BF16;
  costs.messageBytes = double(plan.layout.activationBytes);
}

} // namespace

std::optional<SearchModel> readSearchModel(const PlanRequest &request,
                                           std::string &error) {
  const CompilerOptions &options = request.compiler;
  SilentContext context(error);
  mlir::rota::BuildOptions build = options.build;
  build.sequences = std::max<int64_t>(build.sequences, 1);
  auto built = mlir::rota::buildModel(*context, options.model, build);
  if (failed(built))
    return std::nullopt;
  auto model = mlir::rota::Model::get(*built->module);
  if (failed(model))
    return std::nullopt;
  error.clear();
  return SearchModel{static_cast<int64_t>(model->stack.getLayers()),
                     expertsOf(*built->module)};
}

/// Calls visit(member) for each amount.
template <typename Visit> static void forEachAmount(Visit visit) {
  for (double PartCost::*amount :
       {&PartCost::forward, &PartCost::backward, &PartCost::backwardInput,
        &PartCost::backwardWeight, &PartCost::stash, &PartCost::cotangents,
        &PartCost::stored, &PartCost::gradients, &PartCost::optimizer,
        &PartCost::wholeOptimizer, &PartCost::tensors})
    visit(amount);
}

PartCost &PartCost::operator+=(const PartCost &other) {
  forEachAmount([&](auto amount) { this->*amount += other.*amount; });
  return *this;
}

PartCost PartCost::operator-(const PartCost &other) const {
  PartCost result = *this;
  forEachAmount([&](auto amount) { result.*amount -= other.*amount; });
  return result;
}

LayerCosts layerCosts(const PlanRequest &base, const SearchModel &model,
                      const PlanCandidate &like) {
  PlanCandidate single;
  single.layer = like.layer;
  single.exchange = like.exchange;
  single.schedule = "gpipe";
  single.repeats = model.layers + 2;
  single.remat = like.remat;
  PlanRequest request = requestOf(base, single);
  request.compiler.schedule.splitBackward = like.splitBackward;
  PolicyPlan plan;
  planPolicy(request, plan);
  LayerCosts costs;
  costs.error = plan.error;
  if (!plan.error.empty())
    return costs;
  readParts(*plan.parts, costs);
  costs.operations = plan.operations;
  return costs;
}

} // namespace rota

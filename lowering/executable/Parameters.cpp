// SPDX-License-Identifier: Apache-2.0
//
// Describes parameters and packs their blocks.
#include "lowering/executable/Parameters.h"
#include "lowering/executable/ParameterDivisions.h"

#include "ir/rota/model/Update.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {
namespace {

Initializer initializerOf(ParamOp param) {
  Initializer init;
  Attribute attribute = param.getInit();
  if (auto normal = dyn_cast<NormalAttr>(attribute)) {
    init.kind = Initializer::Kind::Normal;
    init.mean = normal.getMean().convertToDouble();
    init.scale = normal.getDeviation().convertToDouble();
  } else if (auto uniform = dyn_cast<UniformAttr>(attribute)) {
    init.kind = Initializer::Kind::Uniform;
    init.mean = uniform.getLow().convertToDouble();
    init.scale = uniform.getHigh().convertToDouble();
  } else {
    init.mean = cast<ConstantAttr>(attribute).getValue().convertToDouble();
  }
  return init;
}

FailureOr<ElementType> computeTypeOf(ParamOp param) {
  FailureOr<Type> type = readType(param);
  if (failed(type))
    return failure();
  if (type->isF64())
    return param.emitOpError("expected parameters to be read as f32 or bf16, "
                             "got f64");
  return type->isBF16() ? ElementType::BF16 : ElementType::F32;
}

class Builder {
public:
  Builder(const Model &model, CollectiveTable &collectives,
          memory::ModelLayout &layout)
      : model(model), collectives(collectives), layout(layout) {}

  FailureOr<std::vector<ParamOffsetMap>> run() {
    model.module->walk([&](ParamOp param) {
      windows |= isStoredInParts(param, collectives.mesh());
    });
    for (ParamOp param : model.globalParams())
      if (failed(describe(param, {})))
        return failure();
    for (LayerOp kind : model.kinds()) {
      std::vector<int64_t> layers;
      StackOp stack = model.stack;
      for (int64_t i = 0; i < int64_t(stack.getLayers()); ++i)
        if (model.kindOf(i) == kind)
          layers.push_back(i);
      for (ParamOp param : Model::params(kind))
        if (failed(describe(param, layers)))
          return failure();
    }
    std::vector<ParamOffsetMap> offsets;
    for (auto [kind, group] : llvm::zip_equal(model.kinds(), layout.kinds))
      offsets.push_back(pack(Model::params(kind), group.block));
    packEnds(offsets);
    return offsets;
  }

private:
  LogicalResult describe(ParamOp param, std::vector<int64_t> layers) {
    auto compute = computeTypeOf(param);
    if (failed(compute))
      return failure();
    Parameter p;
    p.name = Model::parameterName(param);
    if (JoinedAttr joined = param.getJoinedAttr())
      p.joined = {Model::checkpointName(param), int(joined.getDimension()),
                  joined.getBegin(), joined.getSize()};
    p.layers = std::move(layers);
    p.init = initializerOf(param);
    p.isFrozen = param.getFrozen();
    p.compute = *compute;
    p.gradient = elementTypeOf(gradientType(param));
    if (failed(setDivisions(param, windows, collectives, p)))
      return failure();
    std::vector<int64_t> part =
        partShape(p.shape, p.optimizerDivision, collectives.mesh().axes());
    p.rows = llvm::product_of(ArrayRef(part).drop_back(!part.empty()));
    numbers[param] = layout.program.parameters.size();
    layout.program.parameters.push_back(std::move(p));
    return success();
  }

  ParamOffsetMap pack(ArrayRef<ParamOp> params, memory::ParameterBlock &block) {
    memory::Packer values, gradients;
    ParamOffsetMap offsets;
    for (ParamOp param : params) {
      int number = numbers.lookup(param);
      const Parameter &p = layout.program.parameters[number];
      int64_t count =
          partElements(p.shape, p.computeDivision, layout.program.mesh);
      int64_t value = values.add(byteSize(p.compute) * count);
      int64_t gradient =
          p.isFrozen ? -1 : gradients.add(byteSize(p.gradient) * count);
      block.entries.push_back({number, value, gradient});
      offsets[param] = {value, gradient};
    }
    block.bytes = values.bytes();
    block.gradientBytes = gradients.bytes();
    return offsets;
  }

  /// Parameters that both ends use are last in embed's block and first in
  /// loss's.
  void packEnds(std::vector<ParamOffsetMap> &offsets) {
    auto used = [&](ModelPart part) {
      llvm::SmallSetVector<Operation *, 8> params;
      for (func::FuncOp function : functionsIn(model.module))
        if (signatureOf(function).part == part)
          for (ParamOp param : Model::usedParams(function))
            params.insert(param);
      return params;
    };
    auto embed = used(ModelPart::Embed), loss = used(ModelPart::Loss);
    SmallVector<ParamOp> embedOnly, tied, lossOnly;
    for (ParamOp param : model.globalParams()) {
      bool inLoss = loss.contains(param);
      if (embed.contains(param))
        (inLoss ? tied : embedOnly).push_back(param);
      else
        lossOnly.push_back(param);
    }
    SmallVector<ParamOp> first(embedOnly), last(tied);
    first.append(tied);
    last.append(lossOnly);
    memory::ParameterBlock shared;
    pack(tied, shared);
    layout.tiedBytes = shared.bytes;
    offsets.push_back(pack(first, layout.embed.block));
    offsets.push_back(pack(last, layout.loss.block));
  }

  const Model &model;
  CollectiveTable &collectives;
  memory::ModelLayout &layout;
  bool windows = false; // functions see gathered copies of parameters
  llvm::DenseMap<Operation *, int> numbers;
};

} // namespace

FailureOr<std::vector<ParamOffsetMap>>
layOutParameters(const Model &model, CollectiveTable &collectives,
                 memory::ModelLayout &layout) {
  return Builder(model, collectives, layout).run();
}

} // namespace rota::lowering

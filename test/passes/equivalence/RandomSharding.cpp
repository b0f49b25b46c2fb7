// SPDX-License-Identifier: Apache-2.0
//
// Random meshes and shardings.
#include "test/passes/equivalence/RandomSharding.h"

using namespace rota::interpreter;
using llvm::SmallVector;
using mlir::rota::AxisRefAttr;
using mlir::rota::DimensionShardingAttr;
using mlir::rota::MeshAttr;
using mlir::rota::MeshAxis;
using mlir::rota::ShardingAttr;

static int64_t below(Random &random, int64_t end) {
  return int64_t(random.uniform(0, double(end)));
}

static constexpr int64_t maxRanks = 16;

RandomSharding::RandomSharding(uint64_t seed, mlir::MLIRContext *context)
    : seed(seed), context(context) {
  context->loadDialect<mlir::rota::RotaDialect>();
  Random random(seed);
  const int64_t sizes[] = {2, 2, 2, 4, 4, 3, 8};
  SmallVector<int64_t> mine(mlir::rota::getMaxEnumValForMeshAxis() + 1, 1);
  int64_t ranks = 1;
  for (int64_t axes = 1 + below(random, 3); axes > 0; --axes) {
    int64_t axis = below(random, mine.size()), size = sizes[below(random, 7)];
    if (mine[axis] != 1 || ranks * size > maxRanks)
      continue;
    mine[axis] = size;
    ranks *= size;
  }
  mesh = MeshAttr::get(context, mine);
}

std::string RandomSharding::meshText() const {
  std::string text;
  for (auto [axis, size] : llvm::enumerate(mesh.getSizes()))
    if (size > 1)
      text += (text.empty() ? "" : ",") +
              stringifyMeshAxis(static_cast<MeshAxis>(axis)).str() + "=" +
              std::to_string(size);
  return text;
}

/// All axes but `stage`, along which nothing is divided, whole or in two parts,
/// in any order.
SmallVector<AxisRefAttr> RandomSharding::pieces(Random &random) {
  SmallVector<AxisRefAttr> all;
  auto add = [&](AxisRefAttr ref) {
    all.insert(all.begin() + below(random, all.size() + 1), ref);
  };
  for (auto [number, size] : llvm::enumerate(mesh.getSizes())) {
    auto axis = static_cast<MeshAxis>(number);
    if (axis == MeshAxis::Stage)
      continue;
    if (size >= 4 && size % 2 == 0 && below(random, 3) == 0) {
      int64_t major = size == 8 && below(random, 2) ? 4 : 2;
      add(AxisRefAttr::get(context, axis, 1, major));
      add(AxisRefAttr::get(context, axis, major, size / major));
    } else if (size > 1) {
      add(AxisRefAttr::get(context, axis));
    }
  }
  return all;
}

std::string
RandomSharding::rules(llvm::ArrayRef<std::pair<std::string, int64_t>> names,
                      llvm::ArrayRef<MeshAxis> without) {
  Random random(seed + names.size());
  SmallVector<std::string> axes(names.size());
  SmallVector<int64_t> left;
  for (const auto &[name, size] : names)
    left.push_back(size);
  for (auto [number, ranks] : llvm::enumerate(mesh.getSizes())) {
    auto axis = static_cast<MeshAxis>(number);
    int64_t at = below(random, names.size());
    if (ranks == 1 || llvm::is_contained(without, axis) || left[at] < ranks ||
        below(random, 4) == 0)
      continue;
    bool mayPad = llvm::is_contained({"mlp", "vocab"}, names[at].first);
    if (left[at] % ranks != 0 && !mayPad)
      continue;
    left[at] = llvm::divideCeil(left[at], ranks);
    axes[at] += (axes[at].empty() ? "" : "+") + stringifyMeshAxis(axis).str();
  }
  std::string text;
  for (auto [index, list] : llvm::enumerate(axes))
    text += (index ? "," : "") + names[index].first + "=" + list;
  return text;
}

ShardingAttr RandomSharding::sharding(Random &random,
                                      llvm::ArrayRef<int64_t> shape,
                                      Freedom freedom) {
  SmallVector<SmallVector<AxisRefAttr>> dividing(shape.size());
  SmallVector<int64_t> left(shape);
  SmallVector<AxisRefAttr> unreduced, replicated;
  for (AxisRefAttr piece : pieces(random)) {
    int64_t size = mesh.getSize(piece);
    if (!shape.empty() && below(random, 2)) {
      int64_t dim = below(random, shape.size());
      bool divides = left[dim] % size == 0;
      if (divides || (freedom != Dividing && below(random, 3) == 0)) {
        dividing[dim].push_back(piece);
        left[dim] = llvm::divideCeil(left[dim], size);
        continue;
      }
    }
    int64_t choice = below(random, 8);
    if (choice < 4 && freedom == AnySum)
      unreduced.push_back(piece);
    else if (choice == 4 && freedom != Dividing)
      replicated.push_back(piece);
  }
  SmallVector<DimensionShardingAttr> dimensions;
  for (const auto &axes : dividing)
    dimensions.push_back(DimensionShardingAttr::get(
        context, axes, freedom != Dividing && below(random, 2)));
  return ShardingAttr::get(context, dimensions, unreduced, replicated);
}

void RandomSharding::decorate(mlir::ModuleOp module) {
  auto builder = mlir::OpBuilder::atBlockBegin(module.getBody());
  mlir::rota::MeshOp::create(builder, module.getLoc(), mesh);
  auto name = mlir::rota::RotaDialect::ShardingAttrHelper::getNameStr();
  Random random(seed + 2);
  for (auto param : module.getOps<mlir::rota::ParamOp>()) {
    auto shape = param.getTensorType().getShape();
    ShardingAttr own = sharding(random, shape, Dividing);
    param.setPlacementAttr(
        mlir::rota::PlacementAttr::get(context, shape, own, own, own));
  }
  auto isTensor = [](mlir::Type type) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
    return tensor && tensor.getRank() > 0;
  };
  auto shapeOf = [](mlir::Type type) {
    return llvm::cast<mlir::RankedTensorType>(type).getShape();
  };
  for (auto function : module.getOps<mlir::func::FuncOp>()) {
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
      if (isTensor(type) && below(random, 5) != 0) {
        bool isInteger = mlir::getElementTypeOrSelf(type).isInteger();
        function.setArgAttr(
            index, name,
            sharding(random, shapeOf(type), isInteger ? AnyPart : AnySum));
      }
    // Axes of ops have their own stream: the number of ops before must not
    // matter.
    Random ofOps(seed + 3);
    for (mlir::Operation &op :
         llvm::make_early_inc_range(function.getBody().front()))
      for (mlir::Value result : op.getResults()) {
        bool chosen = below(ofOps, 8) == 0;
        auto tensor = llvm::cast<mlir::RankedTensorType>(result.getType());
        if (!chosen || !isTensor(tensor) || !tensor.getElementType().isF64())
          continue;
        builder.setInsertionPointAfter(&op);
        auto constrain = mlir::rota::ConstrainOp::create(
            builder, op.getLoc(), result,
            sharding(ofOps, tensor.getShape(), AnySum));
        result.replaceAllUsesExcept(constrain.getResult(), constrain);
      }
    Random ofResults(seed + 4);
    for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
      if (isTensor(type) && below(ofResults, 5) < 3)
        function.setResultAttr(index, name,
                               sharding(ofResults, shapeOf(type), AnyPart));
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// The communication of a parameter out of the differences between its
// shardings.
#include "lowering/executable/ParameterDivisions.h"

#include "runtime/program/UpdatePlaces.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {

bool isStoredInParts(ParamOp param, const ProgramMesh &mesh) {
  PlacementAttr placement = param.getPlacementAttr();
  return placement && mesh.divisionOf(placement.getStorage()) !=
                          mesh.divisionOf(placement.getCompute());
}

namespace {

/// The axes by which one division divides a dimension further than another.
struct DivisionStep {
  int64_t dim = 0;
  std::vector<int> axes; // none: they are the same
};

class Placing {
public:
  Placing(ParamOp param, CollectiveTable &collectives, Parameter &parameter)
      : param(param), collectives(collectives), mesh(collectives.mesh().axes()),
        p(parameter) {}

  LogicalResult run(bool windows) {
    PlacementAttr placement = param.getPlacementAttr();
    if (!placement) {
      p.shape = param.getTensorType().getShape().vec();
      if (windows)
        addWindow({});
      return success();
    }
    const ProgramMesh &axes = collectives.mesh();
    p.shape = placement.getWhole().vec();
    p.computeDivision = axes.divisionOf(placement.getCompute());
    p.storageDivision = axes.divisionOf(placement.getStorage());
    // Nothing is divided for updates that there are not.
    p.optimizerDivision = p.isFrozen
                              ? p.storageDivision
                              : axes.divisionOf(placement.getOptimizer());
    unreduced = axes.axesOf(placement.getCompute().getUnreduced());
    llvm::sort(unreduced);
    if (param.getTensorType().getShape() !=
        ArrayRef(partShape(p.shape, p.computeDivision, mesh)))
      return param.emitOpError("expected the type of one rank's part of '")
             << param.getSymName() << "', which 'partition' gives it, got "
             << param.getTensorType();
    DivisionStep storage = step(p.computeDivision, p.storageDivision);
    DivisionStep optimizer = step(p.storageDivision, p.optimizerDivision);
    if (failed(takeUnreduced(storage)))
      return failure();
    if (windows)
      addWindow(storage);
    addOptimizer(optimizer);
    return success();
  }

private:
  /// The step from `from` to `to`: minor axes of at most one dimension.
  static DivisionStep step(const Division &from, const Division &to) {
    for (size_t dim = 0; dim < to.size(); ++dim)
      if (to[dim].size() > from[dim].size())
        return {int64_t(dim),
                {to[dim].begin() + from[dim].size(), to[dim].end()}};
    return {};
  }

  bool isUnreduced(int axis) const {
    return llvm::is_contained(unreduced, axis);
  }

  /// Gradients are scattered over what storage adds; the rest is left for the
  /// optimizer's step.
  LogicalResult takeUnreduced(const DivisionStep &storage) {
    if (p.isFrozen)
      return success();
    for (int axis : storage.axes) {
      if (!isUnreduced(axis))
        return param.emitOpError("expected the gradient of '")
               << param.getSymName() << "' to be a sum over axis '"
               << mesh[axis].name
               << "', which divides its storage further than functions see it";
      llvm::erase(unreduced, axis);
    }
    return success();
  }

  Collective make(Collective::Kind kind, ElementType type,
                  const DivisionStep &step, const Division &whole,
                  StringRef verb) const {
    Collective c;
    c.kind = kind;
    c.type = type;
    c.axes = step.axes;
    if (step.axes.empty()) // a copy or an addition
      c.size = partElements(p.shape, whole, mesh);
    else
      setExtents(partShape(p.shape, whole, mesh), step.dim, c);
    c.reason = (verb + " '" + p.name + "'").str();
    return c;
  }

  void addWindow(const DivisionStep &storage) {
    p.unshard = collectives.add(make(Collective::Kind::AllGather, p.compute,
                                     storage, p.computeDivision, "gathers"));
    if (p.isFrozen)
      return;
    Collective reduce =
        make(Collective::Kind::ReduceScatter, p.gradient, storage,
             p.computeDivision, "reduces the gradient of");
    reduce.accumulate = true;
    p.reduceGrad = collectives.add(std::move(reduce));
  }

  /// The axes of the optimizer's step over which one reduce-scatter sums: the
  /// major ones where the rank's part lies in its accumulator, so that the rest
  /// is cut off by an address, else all or none.
  DivisionStep scattered(const DivisionStep &optimizer) const {
    DivisionStep step = {optimizer.dim, {}};
    for (int axis : optimizer.axes) {
      if (!isUnreduced(axis))
        break;
      step.axes.push_back(axis);
    }
    if (step.axes != optimizer.axes && !hasPartsInPlace(p, mesh))
      step.axes.clear();
    return step;
  }

  /// Reductions of the gradient from storage to optimizer division.
  void addReductions(const DivisionStep &optimizer) {
    using Kind = Collective::Kind;
    DivisionStep scatter = scattered(optimizer);
    for (int axis : scatter.axes)
      llvm::erase(unreduced, axis);
    if (!unreduced.empty()) {
      Collective sum;
      sum.kind = Kind::AllReduce;
      sum.type = p.gradient;
      sum.axes = unreduced;
      sum.size = partElements(p.shape, p.storageDivision, mesh);
      sum.reason = "sums the gradient of '" + p.name + "'";
      p.reduce.push_back(collectives.add(std::move(sum)));
    }
    if (optimizer.axes.empty())
      return;
    if (!scatter.axes.empty())
      p.reduce.push_back(
          collectives.add(make(Kind::ReduceScatter, p.gradient, scatter,
                               p.storageDivision, "reduces the gradient of")));
    else if (!hasPartsInPlace(p, mesh))
      p.reduce.push_back(
          collectives.add(make(Kind::Slice, p.gradient, optimizer,
                               p.storageDivision, "cuts the gradient of")));
  }

  void addOptimizer(const DivisionStep &optimizer) {
    if (!p.isFrozen)
      addReductions(optimizer);
    if (!optimizer.axes.empty())
      p.refresh = collectives.add(make(Collective::Kind::AllGather, p.compute,
                                       optimizer, p.storageDivision,
                                       "gathers the update of"));
  }

  ParamOp param;
  CollectiveTable &collectives;
  const std::vector<MeshAxis> &mesh;
  Parameter &p;
  std::vector<int> unreduced; // axes that nothing has summed over yet, in order
};

} // namespace

LogicalResult setDivisions(ParamOp param, bool windows,
                           CollectiveTable &collectives, Parameter &parameter) {
  return Placing(param, collectives, parameter).run(windows);
}

} // namespace rota::lowering

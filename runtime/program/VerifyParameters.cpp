// SPDX-License-Identifier: Apache-2.0
//
// Divisions of parameters, and collectives between them that agree in size.
#include "runtime/program/Checks.h"
#include "runtime/program/Part.h"
#include "runtime/program/State.h"
#include "runtime/program/TensorNames.h"
#include "runtime/program/UpdatePlaces.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace rota {
namespace {

class ParameterVerifier : Checks {
public:
  ParameterVerifier(const Program &program, std::string &error)
      : Checks(program, error) {}

  bool run() {
    verifyCollectives();
    if (error.empty())
      verifyParameters();
    if (error.empty())
      verifyJoined();
    if (error.empty())
      verifyStates();
    return error.empty();
  }

private:
  /// `inner` must divide what `outer` leaves, by minor axes.
  void follows(const Division &outer, const Division &inner,
               const std::string &what) {
    for (size_t d = 0; d < outer.size(); ++d) {
      const std::vector<int> none;
      const std::vector<int> &axes = d < inner.size() ? inner[d] : none;
      if (axes.size() < outer[d].size() ||
          !std::equal(outer[d].begin(), outer[d].end(), axes.begin()))
        fail(what + ": expected it to divide dimension " + std::to_string(d) +
             " further");
    }
  }

  void verifyCollectives() {
    for (size_t i = 0; i < program.collectives.size(); ++i) {
      const Collective &c = program.collectives[i];
      std::string what = "collective " + std::to_string(i);
      axes(c.axes, what);
      for (int64_t size :
           {c.outer, c.size, c.inner, c.splitOuter, c.splitSize, c.splitInner})
        if (size < 1)
          fail(what + ": expected sizes of at least 1, got " +
               std::to_string(size));
      if (!error.empty())
        return;
      int64_t ranks = groupSize(program.mesh, c.axes);
      if (c.kind == Collective::Kind::AllToAll &&
          (c.size % ranks != 0 || c.splitSize % ranks != 0))
        fail(what + ": expected sizes that " + std::to_string(ranks) +
             " ranks divide, got " + std::to_string(c.size) + " and " +
             std::to_string(c.splitSize));
      if (c.kind == Collective::Kind::Permute &&
          (c.order.size() != c.axes.size() ||
           !std::is_permutation(c.order.begin(), c.order.end(),
                                c.axes.begin())))
        fail(what + ": expected the same axes in another order");
      shift(c.shift, c.axes, what);
    }
  }

  /// A parameter's collective of this kind, from and to tensors of these sizes.
  void collective(int number, Collective::Kind kind, ElementType type,
                  int64_t input, int64_t output, const std::string &what) {
    index(number, program.collectives.size(), true, what);
    if (number == -1 || !error.empty())
      return;
    const Collective &c = program.collectives[number];
    if (c.kind != kind)
      fail(what + ": collective " + std::to_string(number) +
           " is of another kind");
    if (c.type != type)
      fail(what + ": collective " + std::to_string(number) +
           " has another element type");
    expect(input, inputElements(c, program.mesh), what + ": input elements");
    expect(output, outputElements(c, program.mesh), what + ": output elements");
  }

  void verifyParameters() {
    for (const Parameter &p : program.parameters) {
      std::string what = "parameter '" + p.name + "'";
      index(p.updateTask, program.tasks.size(), true,
            "update task of '" + p.name + "'");
      index(p.squareTask, program.tasks.size(), true,
            "square task of '" + p.name + "'");
      for (int64_t size : p.shape)
        if (size < 1)
          fail(what + ": expected sizes of at least 1, got " +
               std::to_string(size));
      if (p.rows < 1)
        fail(what + ": expected at least 1 row, got " + std::to_string(p.rows));
      division(p.computeDivision, p.shape, what + ": compute division");
      division(p.storageDivision, p.shape, what + ": storage division");
      division(p.optimizerDivision, p.shape, what + ": optimizer division");
      follows(p.computeDivision, p.storageDivision,
              what + ": storage division");
      follows(p.storageDivision, p.optimizerDivision,
              what + ": optimizer division");
      if (p.isFrozen && (p.reduceGrad >= 0 || !p.reduce.empty() ||
                         p.stateBytes > 0 || p.updateTask >= 0))
        fail(what + ": expected no gradient, states and update, as it is "
                    "frozen");
      if (p.isFrozen && p.optimizerDivision != p.storageDivision)
        fail(what + ": expected one division of what is stored and of the "
                    "master copy, as it is frozen");
      if (error.empty())
        verifyTransfers(p, what);
    }
  }

  /// Whether a reduce-scatter in place is over the major ones of the axes that
  /// the optimizer adds.
  bool hasMajorAxes(const Collective &c, const Parameter &p) {
    std::vector<int> axes = optimizerAxes(p);
    return c.kind == Collective::Kind::ReduceScatter && c.outer == 1 &&
           hasPartsInPlace(p, program.mesh) && c.axes.size() <= axes.size() &&
           std::equal(c.axes.begin(), c.axes.end(), axes.begin());
  }

  void verifyTransfers(const Parameter &p, const std::string &what) {
    using Kind = Collective::Kind;
    auto elements = [&](const Division &division) {
      return partElements(p.shape, division, program.mesh);
    };
    int64_t compute = elements(p.computeDivision);
    int64_t storage = elements(p.storageDivision);
    int64_t optimizer = elements(p.optimizerDivision);
    collective(p.unshard, Kind::AllGather, p.compute, storage, compute,
               what + ": unshard");
    collective(p.reduceGrad, Kind::ReduceScatter, p.gradient, compute, storage,
               what + ": reduceGrad");
    collective(p.refresh, Kind::AllGather, p.compute, optimizer, storage,
               what + ": refresh");
    bool cut = false; // to the optimizer's division
    for (int number : p.reduce) {
      index(number, program.collectives.size(), false, what + ": reduce");
      if (!error.empty())
        return;
      if (cut)
        fail(what + ": reduce: expected nothing after the reduce-scatter or "
                    "slice");
      const Collective &c = program.collectives[number];
      cut = c.kind == Kind::ReduceScatter || c.kind == Kind::Slice;
      int64_t part =
          hasMajorAxes(c, p) ? outputElements(c, program.mesh) : optimizer;
      collective(number, cut ? c.kind : Kind::AllReduce, p.gradient, storage,
                 cut ? part : storage, what + ": reduce");
    }
    if (optimizer != storage && !cut && !hasPartsInPlace(p, program.mesh))
      fail(what + ": reduce: expected a reduce-scatter or slice from storage "
                  "to optimizer division");
    if (optimizer != storage && p.refresh < 0)
      fail(what + ": expected a refresh from optimizer to storage division");
  }

  /// A tensor of files and the joined parameters of it so far.
  struct Joining {
    const Parameter *first = nullptr;
    int64_t end = 0; // along the joined dimension
  };

  /// Joined parameters stand in order, have each element of their tensor once,
  /// and agree in the rest.
  void verifyJoined() {
    std::map<std::pair<std::string, std::vector<int64_t>>, Joining> tensors;
    for (const Parameter &p : program.parameters) {
      std::string what = "parameter '" + p.name + "'";
      bool isJoined = !p.joined.name.empty();
      if (isJoined)
        index(p.joined.dimension, p.shape.size(), false,
              what + ": joined dimension");
      if (!error.empty())
        return;
      Joining &joining = tensors[{fileName(p), p.layers}];
      if (joining.first && !isJoined)
        fail(what + ": expected a name that no joined tensor has");
      if (!joining.first)
        joining.first = &p;
      if (!isJoined)
        continue;
      expect(joining.end, p.joined.begin, what + ": its place in the tensor");
      joining.end += p.shape[p.joined.dimension];
      if (!isAlike(*joining.first, p))
        fail(what + ": expected the type, shape and states of '" +
             joining.first->name + "', which is joined with it");
    }
    for (const auto &[key, joining] : tensors)
      if (const JoinedTensor &joined = joining.first->joined;
          !joined.name.empty())
        expect(joined.size, joining.end, "joined tensor '" + joined.name + "'");
  }

  /// Whether both may be parts of one tensor.
  static bool isAlike(const Parameter &a, const Parameter &b) {
    return a.joined.name == b.joined.name &&
           a.joined.dimension == b.joined.dimension &&
           fileShape(a) == fileShape(b) && masterType(a) == masterType(b) &&
           std::ranges::equal(a.states, b.states,
                              [](const State &x, const State &y) {
                                return x.name == y.name && x.type == y.type;
                              });
  }

  /// States inside their block, and scalars of options that there are.
  void verifyStates() {
    for (const Parameter &p : program.parameters)
      for (const State &state : p.states)
        within(p.stateBytes, state.offset,
               byteSize(state.type) *
                   partElements(p.shape, p.optimizerDivision, program.mesh),
               false, "state '" + state.name + "' of '" + p.name + "'",
               "states");
    for (const Scalar &scalar : program.scalars) {
      if (scalar.isOfOption() &&
          std::none_of(program.options.begin(), program.options.end(),
                       [&](const ProgramOption &option) {
                         return option.name == scalar.option;
                       }))
        fail("a scalar: expected one of the program's options, got '" +
             scalar.option + "'");
      bool isScaled = scalar.kind == Scalar::Kind::LearningRate ||
                      scalar.kind == Scalar::Kind::Option;
      if (!std::isfinite(scalar.factor) || scalar.factor < 0.0 ||
          (!isScaled && scalar.factor != 1.0))
        fail("a scalar: expected a factor of at least 0, 1 unless it is of the "
             "learning rate or an option, got " +
             std::to_string(scalar.factor));
    }
  }
};

} // namespace

bool verifyParameters(const Program &program, std::string &error) {
  return ParameterVerifier(program, error).run();
}

} // namespace rota

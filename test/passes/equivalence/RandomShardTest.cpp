// SPDX-License-Identifier: Apache-2.0
//
// Random modules, divided at random, compute on all ranks of their mesh what
// they compute whole. For many more than a build has time for:
// `ROTA_TEST_CASES=100000 ROTA_TEST_SEED=1000 equivalence-tests
// --gtest_filter=RandomShardings*`.
#include "test/RandomCases.h"
#include "test/interpreter/MeshModelRun.h"
#include "test/passes/equivalence/Passes.h"
#include "test/passes/equivalence/RandomFunction.h"
#include "test/passes/equivalence/RandomSharding.h"
#include "test/passes/equivalence/RandomTensors.h"
#include "test/passes/equivalence/TestModels.h"

#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

using namespace rota::interpreter;
using mlir::func::FuncOp;
using mlir::rota::Model;
using mlir::rota::ParamOp;
using mlir::rota::ShardingAttr;

namespace {

constexpr double tolerance = 1e-10;

/// Relative to the largest element, which is of order one or zero but for
/// rounding: a softmax's gradients sum up to nothing.
double errorOf(const Tensor &actual, const Tensor &expected) {
  double largest = 0;
  for (double element : expected.elements)
    largest = std::max(largest, std::abs(element));
  double error = relativeError(actual, expected);
  return largest > 0 ? error * largest / std::max(largest, 1e-3) : error;
}

std::string textOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

/// A module with one function `f`, and its results.
class Subject {
public:
  Subject(uint64_t seed, const RandomModule &random)
      : module(random.text), random(seed + 5), vocabulary(random.vocabulary) {}

  /// Why the partitioned module computes something else; empty when it does
  /// not.
  std::string check(uint64_t seed) {
    if (!module)
      return "does not parse: " + module.takeDiagnostics();
    RandomSharding(seed, module.getContext()).decorate(module.get());
    decorated = textOf(module.get());
    if (failed(module.verify()))
      return "does not verify: " + module.takeDiagnostics();
    if (!runWhole())
      return "does not run: " + module.takeDiagnostics();
    if (failed(runPasses(module,
                         "propagate-shardings,insert-reshards{mode=auto},"
                         "partition,cse,merge-collectives,"
                         "split-collectives{tensor-exchange=ring},"
                         "schedule-collectives,verify-partitioned")))
      return "is refused: " + module.takeDiagnostics();
    return runParts();
  }

  /// The module before the passes, with its shardings.
  std::string decorated;

private:
  static llvm::ArrayRef<int64_t> shapeOf(mlir::Type type) {
    return llvm::cast<mlir::RankedTensorType>(type).getShape();
  }

  bool runWhole();
  std::string runParts();

  TestModule module;
  Random random;
  int64_t vocabulary;
  llvm::SmallVector<Tensor> arguments, results;
  Tensors parameters, gradients;
};

bool Subject::runWhole() {
  FuncOp function = module.function("f");
  for (mlir::Type type : function.getArgumentTypes()) {
    bool isInteger = mlir::getElementTypeOrSelf(type).isInteger();
    arguments.push_back(isInteger ? random.integers(shapeOf(type), vocabulary)
                                  : random.uniform(shapeOf(type), -1, 1));
    // The last argument is targets, of which some do not count.
    if (isInteger && arguments.size() == function.getNumArguments())
      for (double &target : arguments.back().elements)
        target = random.uniform(0, 1) < 0.2 ? -1 : target;
  }
  Environment environment;
  for (auto param : module.get().getOps<ParamOp>()) {
    std::string name = param.getSymName().str();
    auto shape = param.getTensorType().getShape();
    parameters[name] = random.uniform(shape, -1, 1);
    gradients[name] = Tensor(shape);
    environment.parameters[name] = &parameters[name];
    environment.gradients[name] = &gradients[name];
  }
  auto run = runFunction(function, arguments, environment);
  if (failed(run))
    return false;
  results = std::move(*run);
  return true;
}

std::string Subject::runParts() {
  FuncOp function = module.function("f");
  auto mesh = mlir::rota::meshOf(module.get());
  std::map<std::string, Parts> values, sums;
  std::vector<Environment> environments(mesh.getRanks());
  auto computeOf = [&](ParamOp param) {
    auto placement = param.getPlacement();
    return placement ? placement->getCompute()
                     : mlir::rota::replicatedSharding(
                           module.getContext(),
                           shapeOf(param.getTensorType()).size());
  };
  for (auto param : module.get().getOps<ParamOp>()) {
    std::string symbol = param.getSymName().str();
    ShardingAttr compute = computeOf(param);
    values[symbol] = cut(
        parameters[symbol],
        ShardingAttr::get(module.getContext(), compute.getDimensions(), {}, {}),
        mesh);
    for (auto [rank, part] : llvm::enumerate(values[symbol])) {
      sums[symbol].emplace_back(part.shape);
      environments[rank].parameters[symbol] = &part;
    }
    for (auto [rank, part] : llvm::enumerate(sums[symbol]))
      environments[rank].gradients[symbol] = &part;
  }
  auto parts = runOnMesh(function, cutArguments(function, arguments, mesh),
                         environments);
  if (failed(parts))
    return "does not run on the mesh: " + module.takeDiagnostics();
  auto compare = [&](const Parts &held, const Tensor &expected,
                     ShardingAttr sharding, const std::string &what) {
    auto whole = join(function.getLoc(), held, expected.shape, sharding, mesh);
    if (failed(whole))
      return what + ": " + module.takeDiagnostics();
    double error = errorOf(*whole, expected);
    return error < tolerance ? std::string()
                             : what + " has relative error " +
                                   llvm::formatv("{0:e}", error).str();
  };
  for (auto [index, held] : llvm::enumerate(*parts)) {
    std::string fault =
        compare(held, results[index], shardingOfResult(function, index),
                "result " + std::to_string(index));
    if (!fault.empty())
      return fault;
  }
  for (auto param : module.get().getOps<ParamOp>()) {
    std::string symbol = param.getSymName().str();
    std::string fault = compare(sums[symbol], gradients[symbol],
                                computeOf(param), "gradient of " + symbol);
    if (!fault.empty())
      return fault;
  }
  return "";
}

/// Why function `seed` of `ops` ops fails, with its text; empty when it does
/// not.
std::string checkFunction(uint64_t seed, int ops) {
  // Every fourth has rows and columns, and lives longer.
  RandomModule random =
      seed % 4 == 3 ? RandomModule{randomFunction(seed, ops, 4 + seed % 3,
                                                  2 + seed % 7, "f64"),
                                   2}
                    : randomTensorFunction(seed, ops);
  Subject subject(seed, random);
  std::string fault = subject.check(seed);
  return fault.empty() ? fault : fault + "\n" + subject.decorated;
}

/// The first of a function's beginnings that fails, or all of it.
std::string reduced(uint64_t seed, int ops) {
  for (int fewer = 1; fewer < ops; ++fewer)
    if (std::string fault = checkFunction(seed, fewer); !fault.empty())
      return fault;
  return checkFunction(seed, ops);
}

TEST(RandomShardings, KeepWhatFunctionsCompute) {
  uint64_t first = rota::firstSeed();
  uint64_t count = rota::randomCases(400);
  unsigned faults = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    int ops = 2 + seed % 17;
    if (checkFunction(seed, ops).empty())
      continue;
    ++faults;
    if (faults <= 5)
      ADD_FAILURE() << "seed " << seed << ": " << reduced(seed, ops);
  }
  EXPECT_EQ(faults, 0u) << "of " << count << " modules";
}

/// Why model `seed` fails, with its text; empty when it does not.
std::string checkModel(uint64_t seed, int ops) {
  RandomModule random = randomTensorModel(seed, ops);
  TestModule module(random.text);
  if (!module)
    return "does not parse: " + module.takeDiagnostics() + random.text;
  const char *policies[] = {"none", "full", "minimal"};
  std::string differentiation = std::string("differentiate{remat=") +
                                policies[seed % 3] +
                                (seed % 2 ? " split=true}" : "}");
  if (failed(runPasses(module, differentiation)))
    return differentiation + ": " + module.takeDiagnostics() + random.text;
  auto model = Model::get(module.get());
  if (failed(model))
    return "is no model: " + module.takeDiagnostics();
  Tensors parameters = randomParameters(*model, seed);
  auto microbatches =
      randomMicrobatches(*model, random.vocabulary, 2, seed + 1);
  auto expected = differentiate(*model, parameters, microbatches);
  if (failed(expected))
    return "does not run: " + module.takeDiagnostics();
  auto activation = model->activationType().getShape();
  RandomSharding sharding(seed, module.getContext());
  using mlir::rota::MeshAxis;
  std::string shard = "shard{mesh=" + sharding.meshText() +
                      " rules=storage/embed=,storage/in=,storage/norm=," +
                      sharding.rules({{"mlp", activation[2]},
                                      {"heads", activation[2]},
                                      {"embed", activation[2]},
                                      {"in", activation[1]},
                                      {"vocab", random.vocabulary}},
                                     {MeshAxis::Stage, MeshAxis::Fsdp}) +
                      "," +
                      sharding.rules({{"activation/batch", activation[0]},
                                      {"activation/length", activation[1]},
                                      {"activation/embed", activation[2]}},
                                     {MeshAxis::Stage}) +
                      "}";
  auto where = [&] { return "\n" + shard + "\n" + random.text; };
  if (failed(runPasses(module, shard))) {
    std::string refusal = module.takeDiagnostics();
    // Rules may divide dimensions that a reshape needs in whole parts, such as
    // heads, or that must not be padded.
    return llvm::StringRef(refusal).contains("=' leaves it whole")
               ? std::string()
               : "is refused: " + refusal + where();
  }
  auto partitioned = Model::get(module.get());
  if (failed(partitioned))
    return "is no model: " + module.takeDiagnostics() + where();
  auto step = differentiateOnMesh(*partitioned, parameters, microbatches);
  if (failed(step))
    return "does not run on the mesh: " + module.takeDiagnostics() + where();
  double error = stepError(*step, *expected);
  return error < tolerance ? std::string()
                           : "has relative error " +
                                 llvm::formatv("{0:e}", error).str() + where();
}

TEST(RandomShardings, KeepGradientsOfModels) {
  uint64_t first = rota::firstSeed();
  uint64_t count = rota::randomCases(80);
  unsigned faults = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::string fault = checkModel(seed, 1 + seed % 12);
    faults += !fault.empty();
    if (!fault.empty() && faults <= 5)
      ADD_FAILURE() << "seed " << seed << ": " << fault;
  }
  EXPECT_EQ(faults, 0u) << "of " << count << " models";
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Random meshes, shapes and shardings: the plan's ops verify, give every rank
// its part, and cost no more than gathering everything; merging the collectives
// of several plans keeps what they give.
#include "ir/rota/sharding/Sharding.h"
#include "passes/shard/Passes.h"
#include "passes/shard/reshard/ReshardPlanner.h"
#include "test/RandomCases.h"
#include "test/passes/shard/reshard/SimulatedRanks.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace mlir::rota;
using ::rota::test::Array;
using ::rota::test::SimulatedRanks;

namespace {

struct Question {
  MeshAttr mesh;
  RankedTensorType whole;
  ShardingAttr from, to;
};

class Questions {
public:
  Questions(MLIRContext *context, unsigned seed)
      : context(context), random(seed) {}

  Question next() {
    Question question;
    question.mesh = mesh();
    SmallVector<int64_t> shape(pick({0, 1, 2, 2, 3, 3}));
    for (int64_t &size : shape)
      size = pick({1, 2, 3, 4, 5, 6, 8, 8, 10, 12, 12, 16, 24});
    question.whole = RankedTensorType::get(shape, Float32Type::get(context));
    question.from = sharding(question, /*unreduced=*/nullptr);
    question.to = sharding(question, &question.from);
    return question;
  }

  /// Another question that begins where `question` ends.
  Question after(const Question &question) {
    return {question.mesh, question.whole, question.to,
            sharding(question, &question.to)};
  }

  int64_t below(int64_t end) {
    return std::uniform_int_distribution<int64_t>(0, end - 1)(random);
  }

private:
  int64_t pick(ArrayRef<int64_t> choices) {
    return choices[below(choices.size())];
  }

  /// Up to 48 ranks.
  MeshAttr mesh() {
    SmallVector<int64_t> sizes(getMaxEnumValForMeshAxis() + 1, 1);
    int64_t ranks = 1;
    for (int64_t number = pick({1, 2, 3, 4}); number > 0; --number) {
      int64_t &size = sizes[below(sizes.size())];
      int64_t wanted = pick({2, 2, 2, 3, 4, 4, 6, 8});
      if (size == 1 && ranks * wanted <= 48)
        ranks *= size = wanted;
    }
    return MeshAttr::get(context, sizes);
  }

  /// The mesh's axes, some of them in two parts, in any order.
  SmallVector<AxisRefAttr> parts(MeshAttr mesh) {
    SmallVector<AxisRefAttr> parts;
    for (auto [number, size] : llvm::enumerate(mesh.getSizes())) {
      auto axis = static_cast<MeshAxis>(number);
      int64_t first = pick({2, 2, 3, 4});
      if (size > first && size % first == 0 && below(2) == 0) {
        parts.push_back(AxisRefAttr::get(context, axis, 1, first));
        parts.push_back(AxisRefAttr::get(context, axis, first, size / first));
      } else if (size > 1 || below(4) == 0) {
        parts.push_back(AxisRefAttr::get(context, axis));
      }
    }
    std::shuffle(parts.begin(), parts.end(), random);
    return parts;
  }

  /// A random sharding, unreduced over some of what `from` is if given.
  ShardingAttr sharding(const Question &question, const ShardingAttr *from) {
    SmallVector<SmallVector<AxisRefAttr>> dimensions(question.whole.getRank());
    SmallVector<AxisRefAttr> unreduced;
    if (from)
      for (AxisRefAttr ref : from->getUnreduced())
        if (below(3) == 0)
          unreduced.push_back(ref);
    for (AxisRefAttr ref : parts(question.mesh)) {
      if (llvm::any_of(unreduced, [&](AxisRefAttr other) {
            return other.getAxis() == ref.getAxis();
          }))
        continue;
      int64_t place = below(dimensions.size() + 2);
      if (place < int64_t(dimensions.size()))
        dimensions[place].push_back(ref);
      else if (place == int64_t(dimensions.size()) && !from)
        unreduced.push_back(ref);
    }
    SmallVector<DimensionShardingAttr> attrs;
    for (const auto &axes : dimensions)
      attrs.push_back(
          DimensionShardingAttr::get(context, axes, /*open=*/below(2) == 0));
    return ShardingAttr::get(context, attrs, unreduced, {});
  }

  MLIRContext *context;
  std::mt19937 random;
};

class ReshardPropertyTest : public testing::Test {
protected:
  ReshardPropertyTest() {
    context.loadDialect<RotaDialect, func::FuncDialect, arith::ArithDialect>();
  }

  /// The parts of the ranks under `sharding`: addends by position along the
  /// unreduced axes, each cut.
  std::vector<Array> distribute(const Question &question, ShardingAttr sharding,
                                std::vector<Array> &addends) {
    SimulatedRanks ranks(question.mesh);
    std::vector<Array> held;
    for (int64_t rank = 0; rank < question.mesh.getRanks(); ++rank)
      held.push_back(
          ranks.partOf(addends[ranks.position(rank, sharding.getUnreduced())],
                       sharding, rank));
    return held;
  }

  /// Random addends under `from`, and their sums as `to` has them.
  void makeValues(const Question &question, Questions &questions,
                  std::vector<Array> &before, std::vector<Array> &after) {
    MeshAttr mesh = question.mesh;
    SimulatedRanks ranks(mesh);
    ArrayRef<AxisRefAttr> from = question.from.getUnreduced(),
                          to = question.to.getUnreduced();
    auto make = [&](ArrayRef<AxisRefAttr> axes) {
      return std::vector<Array>(mesh.getSize(axes),
                                Array(question.whole.getShape()));
    };
    before = make(from);
    after = make(to);
    for (Array &addend : before)
      for (double &value : addend.values)
        value = double(1 + questions.below(1000));
    std::vector<bool> added(before.size(), false);
    for (int64_t rank = 0; rank < mesh.getRanks(); ++rank) {
      int64_t source = ranks.position(rank, from);
      if (added[source])
        continue;
      added[source] = true;
      Array &sum = after[ranks.position(rank, to)];
      for (auto [a, b] : llvm::zip_equal(sum.values, before[source].values))
        a += b;
    }
  }

  /// A function that runs the plan on one rank's part.
  OwningOpRef<ModuleOp> emit(const Question &question,
                             const ReshardPlan &plan) {
    Location loc = UnknownLoc::get(&context);
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    OpBuilder builder(module->getBodyRegion());
    MeshOp::create(builder, loc, question.mesh);
    Type local = partType(question.whole, question.from, question.mesh);
    Type result = partType(question.whole, question.to, question.mesh);
    auto function = func::FuncOp::create(
        builder, loc, "f", builder.getFunctionType(local, result));
    builder.setInsertionPointToStart(function.addEntryBlock());
    Value value =
        emitReshard(builder, loc, function.getArgument(0), plan, "a test");
    func::ReturnOp::create(builder, loc, value);
    return module;
  }

  /// A function that runs the plans one after the other on the parts of two
  /// values, and adds what they give.
  OwningOpRef<ModuleOp> emitSum(const Question &question,
                                ArrayRef<ReshardPlan> plans) {
    OwningOpRef<ModuleOp> module = emit(question, {});
    auto function = module->lookupSymbol<func::FuncOp>("f");
    Block &body = function.getBody().front();
    body.clear();
    Value x = body.getArgument(0);
    Value y = body.addArgument(x.getType(), x.getLoc());
    Type result = partType(question.whole, question.to, question.mesh);
    OpBuilder builder = OpBuilder::atBlockEnd(&body);
    function.setFunctionType(
        builder.getFunctionType(body.getArgumentTypes(), result));
    for (const ReshardPlan &plan : plans) {
      x = emitReshard(builder, x.getLoc(), x, plan, "x");
      y = emitReshard(builder, x.getLoc(), y, plan, "y");
    }
    Value sum = arith::AddFOp::create(builder, x.getLoc(), x, y);
    func::ReturnOp::create(builder, x.getLoc(), sum);
    return module;
  }

  size_t collectives(ModuleOp module) {
    size_t count = 0;
    module.walk([&](CollectiveOpInterface) { ++count; });
    return count;
  }

  /// Runs the module's function on every rank, whose arguments are given.
  std::vector<Array> run(const Question &question, ModuleOp module,
                         std::vector<std::vector<Array>> arguments) {
    SimulatedRanks ranks(question.mesh);
    auto function = module.lookupSymbol<func::FuncOp>("f");
    Block &body = function.getBody().front();
    llvm::DenseMap<Value, std::vector<Array>> values;
    for (auto [argument, held] :
         llvm::zip_equal(body.getArguments(), arguments))
      values[argument] = held;
    for (Operation &op : body.without_terminator()) {
      std::vector<Array> held = values.at(op.getOperand(0));
      if (isa<arith::AddFOp>(op))
        for (auto [a, b] : llvm::zip_equal(held, values.at(op.getOperand(1))))
          a = ::rota::test::sum({a, b});
      else
        held = ranks.run(&op, held);
      values[op.getResult(0)] = held;
    }
    return values.at(body.getTerminator()->getOperand(0));
  }

  void check(const Question &question, Questions &questions,
             const ReshardPlan &plan) {
    OwningOpRef<ModuleOp> module = emit(question, plan);
    ASSERT_TRUE(succeeded(verify(*module)));
    std::vector<Array> before, after;
    makeValues(question, questions, before, after);
    std::vector<Array> expected = distribute(question, question.to, after);
    std::vector<Array> actual =
        run(question, *module, {distribute(question, question.from, before)});
    for (auto [rank, pair] : llvm::enumerate(llvm::zip_equal(actual, expected)))
      ASSERT_EQ(std::get<0>(pair), std::get<1>(pair)) << "rank " << rank;
  }

  std::string textOf(const Question &question, const ReshardPlan &plan) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << question.mesh << " " << question.whole << "\n"
           << question.from << "\n"
           << question.to << "\n";
    emit(question, plan)->print(stream);
    return text;
  }

  MLIRContext context;
};

TEST_F(ReshardPropertyTest, EveryRankGetsItsPartAtNoMoreThanThePlainCost) {
  unsigned seed = ::rota::firstSeed(1);
  int cases = ::rota::randomCases(200);
  std::printf("seed %u, %d cases\n", seed, cases);
  Questions questions(&context, seed);
  int cheaper = 0;
  for (int index = 0; index < cases; ++index) {
    Question question = questions.next();
    ReshardPlan plain =
        gatherAll(question.whole, question.from, question.to, question.mesh);
    ReshardPlan plan =
        planReshard(question.whole, question.from, question.to, question.mesh);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", case " +
                 std::to_string(index) + "\n" + textOf(question, plan));
    check(question, questions, plain);
    check(question, questions, plan);
    EXPECT_FALSE(plain.cost() < plan.cost());
    cheaper += plan.cost() < plain.cost();
    if (HasFailure())
      return;
  }
  // Otherwise nothing was compared but the plain way with itself.
  EXPECT_GT(cheaper, cases / 4);
}

TEST_F(ReshardPropertyTest, MergingKeepsTheValues) {
  Questions questions(&context, 3);
  int fewer = 0;
  for (int index = 0; index < 100; ++index) {
    // chain(x) + chain(y), where a chain is two plans, one of them plain.
    Question first = questions.next(), second = questions.after(first);
    ReshardPlan plan =
        planReshard(first.whole, first.from, first.to, first.mesh);
    ReshardPlan plain =
        gatherAll(second.whole, second.from, second.to, second.mesh);
    Question all{first.mesh, first.whole, first.from, second.to};
    OwningOpRef<ModuleOp> module = emitSum(all, {plan, plain});
    size_t before = collectives(*module);
    PassManager manager(&context, ModuleOp::getOperationName());
    manager.addPass(createMergeCollectives());
    ASSERT_TRUE(succeeded(manager.run(*module)));
    fewer += collectives(*module) < before;

    std::string text;
    llvm::raw_string_ostream(text) << *module;
    SCOPED_TRACE("case " + std::to_string(index) + "\n" + text);
    std::vector<Array> x, y, sumOfX, sumOfY;
    makeValues(all, questions, x, sumOfX);
    makeValues(all, questions, y, sumOfY);
    for (auto [a, b] : llvm::zip_equal(sumOfX, sumOfY))
      a = ::rota::test::sum({a, b});
    ASSERT_EQ(run(all, *module,
                  {distribute(all, all.from, x), distribute(all, all.from, y)}),
              distribute(all, all.to, sumOfX));
  }
  EXPECT_GT(fewer, 30);
}

TEST_F(ReshardPropertyTest, SeesAWrongPlan) {
  Questions questions(&context, 1);
  auto sharding = [&](ArrayRef<AxisRefAttr> axes) {
    return ShardingAttr::get(
        &context, DimensionShardingAttr::get(&context, axes, false), {}, {});
  };
  auto data = AxisRefAttr::get(&context, MeshAxis::Data);
  auto tensor = AxisRefAttr::get(&context, MeshAxis::Tensor);
  Question question{MeshAttr::get(&context, {2, 1, 1, 1, 1, 1, 4}),
                    RankedTensorType::get({8}, Float32Type::get(&context)),
                    sharding({data, tensor}), sharding({tensor, data})};
  ReshardPlan plan =
      planReshard(question.whole, question.from, question.to, question.mesh);
  ASSERT_EQ(plan.steps.size(), 1u);
  plan.steps[0].order = plan.steps[0].axes;
  OwningOpRef<ModuleOp> module = emit(question, plan);
  std::vector<Array> before, after;
  makeValues(question, questions, before, after);
  EXPECT_NE(
      run(question, *module, {distribute(question, question.from, before)}),
      distribute(question, question.to, after));
}

} // namespace

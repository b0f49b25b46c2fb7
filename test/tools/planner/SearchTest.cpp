// SPDX-License-Identifier: Apache-2.0
//
// The search for a plan: no plan is below its bounds, and the best plan is that
// of planning all candidates.
#include "tools/planner/search/Search.h"
#include "tools/planner/Machines.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <map>

using namespace rota;

namespace {

using mlir::rota::MeshAxis;

SearchRequest requestOf(const std::string &model, int64_t devices,
                        int64_t batch) {
  SearchRequest request;
  CompilerOptions &compiler = request.plan.compiler;
  compiler.model = ROTA_SOURCE_DIR "/models/configs/" + model;
  compiler.shard.optimizer = "adamw";
  compiler.build.sequenceLength = 64;
  request.devices = devices;
  request.batchSize = batch;
  request.fixed.accumulate = 1;
  request.limits.seconds = 600;
  return request;
}

void fix(SearchRequest &request, MeshAxis axis, int64_t size) {
  request.fixed.axes[static_cast<size_t>(axis)] = size;
}

void setMachine(SearchRequest &request, const std::string &name) {
  std::string error;
  auto found = findMachine(name, error);
  ASSERT_TRUE(found) << error;
  request.plan.compiler.machine = std::move(found->machine);
}

/// Two stages or four, with any schedule.
SearchRequest pipelineRequest() {
  SearchRequest request = requestOf("simple", 4, 8);
  for (MeshAxis axis : {MeshAxis::Fsdp, MeshAxis::Sequence, MeshAxis::Tensor})
    fix(request, axis, 1);
  request.fixed.remat = "minimal";
  request.fixed.repeats = 2;
  return request;
}

/// Weights that are gathered.
SearchRequest gatherRequest() {
  SearchRequest request = requestOf("tiny", 4, 4);
  fix(request, MeshAxis::Tensor, 1);
  fix(request, MeshAxis::Sequence, 1);
  request.fixed.schedule = "1f1b";
  request.fixed.remat = "minimal";
  request.plan.compiler.memory = int64_t(1) << 40;
  return request;
}

/// Layers that are divided, on a machine whose nodes have eight devices.
SearchRequest tensorRequest() {
  SearchRequest request = requestOf("tiny", 8, 8);
  setMachine(request, "h100-sxm-80gb");
  fix(request, MeshAxis::Fsdp, 1);
  request.plan.compiler.build.compute = mlir::rota::ComputeType::BF16;
  request.fixed.schedule = "interleaved-1f1b";
  request.fixed.repeats = 2;
  request.fixed.remat = "full";
  return request;
}

/// Steps without a barrier.
SearchRequest steadyRequest() {
  SearchRequest request = pipelineRequest();
  request.plan.optimizer.gradientClip = 0;
  fix(request, MeshAxis::Stage, 4);
  return request;
}

SearchRequest expertsRequest() {
  SearchRequest request = requestOf("tiny-moe", 4, 4);
  fix(request, MeshAxis::Sequence, 1);
  fix(request, MeshAxis::Fsdp, 1);
  fix(request, MeshAxis::Tensor, 1);
  request.fixed.remat = "none";
  request.fixed.schedule = "zb1p";
  return request;
}

/// The costs of layers, each once.
class Costs {
public:
  Costs(const SearchRequest &request, const SearchModel &model)
      : request(request), model(model) {}

  const LayerCosts &of(PlanCandidate like) {
    auto [found, isNew] = known.try_emplace(
        {like.layer, like.remat, like.splitBackward}, LayerCosts());
    if (isNew)
      found->second = layerCosts(request.plan, model, like);
    return found->second;
  }

private:
  const SearchRequest &request;
  const SearchModel &model;
  std::map<std::tuple<LayerDivision, std::string, bool>, LayerCosts> known;
};

/// Plans the candidate, with the larger bounds of those by whole backwards and
/// by its own.
PlannedCandidate planOf(const SearchRequest &request,
                        const PlanCandidate &candidate, Costs &costs) {
  StepConditions conditions = conditionsFor(request.plan, request.devices);
  PlannedCandidate plan = evaluate(request.plan, candidate);
  for (bool isSplit : {false, candidate.splitBackward}) {
    PlanCandidate like = candidate;
    like.splitBackward = isSplit;
    const LayerCosts &layers = costs.of(like);
    EXPECT_EQ(layers.error, "");
    Assessment closed = assess(candidate, layers, conditions);
    auto simulated = simulateCandidate(candidate, layers, conditions);
    EXPECT_TRUE(simulated) << flagsOf(candidate);
    EXPECT_LE(closed.leastSeconds, simulated->leastSeconds);
    EXPECT_LE(closed.leastBytes, simulated->leastBytes);
    plan.leastSeconds = std::max(plan.leastSeconds, simulated->leastSeconds);
    plan.leastBytes = std::max(plan.leastBytes, simulated->leastBytes);
  }
  return plan;
}

/// All plans of a request.
std::vector<PlannedCandidate> planAll(const SearchRequest &request) {
  std::string error;
  SearchModel model = *readSearchModel(request.plan, error);
  Costs costs(request, model);
  std::vector<std::string> policies = {"none", "minimal", "full"};
  if (request.fixed.remat)
    policies = {*request.fixed.remat};
  std::vector<PlannedCandidate> plans;
  for (const LayerDivision &division : searchedDivisions(request, model))
    for (const std::string &policy : policies)
      forEachCandidate(request, model, division, [&](PlanCandidate candidate) {
        candidate.remat = policy;
        plans.push_back(planOf(request, candidate, costs));
      });
  return plans;
}

class Bounds : public testing::TestWithParam<SearchRequest (*)()> {};

TEST_P(Bounds, AreBelowEachPlan) {
  std::vector<PlannedCandidate> plans = planAll(GetParam()());
  EXPECT_GT(plans.size(), 10U);
  double time = 0, memory = 0; // the largest shares that bounds say
  for (const PlannedCandidate &plan : plans) {
    if (!plan.error.empty())
      continue;
    EXPECT_LE(plan.leastSeconds, plan.seconds * (1 + 1e-9))
        << flagsOf(plan.candidate);
    EXPECT_LE(plan.leastBytes, double(plan.bytes)) << flagsOf(plan.candidate);
    time = std::max(time, plan.leastSeconds / plan.seconds);
    memory = std::max(memory, plan.leastBytes / double(plan.bytes));
  }
  // Bounds of nothing would be of no use.
  EXPECT_GT(time, 0.8);
  EXPECT_GT(memory, 0.4);
}

INSTANTIATE_TEST_SUITE_P(Requests, Bounds,
                         testing::Values(pipelineRequest, gatherRequest,
                                         tensorRequest, steadyRequest,
                                         expertsRequest));

/// The search plans all candidates that its bounds do not exclude.
SearchLimits unlimited() {
  SearchLimits limits;
  limits.divisions = limits.simulations = limits.plans = 100000;
  limits.refined = 0;
  limits.seconds = 600;
  return limits;
}

TEST(Search, FindsTheOptimum) {
  SearchRequest request = pipelineRequest();
  std::vector<PlannedCandidate> plans = planAll(request);
  std::vector<int64_t> bytes;
  for (const PlannedCandidate &plan : plans)
    bytes.push_back(plan.bytes);
  std::ranges::sort(bytes);
  request.limits = unlimited();
  for (int64_t memory : {int64_t(0), bytes[bytes.size() / 2], bytes[2]}) {
    request.plan.compiler.memory = memory;
    auto fits = [&](const PlannedCandidate &plan) {
      return plan.error.empty() && (memory == 0 || plan.bytes <= memory);
    };
    std::vector<double> seconds;
    for (const PlannedCandidate &plan : plans)
      if (fits(plan) && std::ranges::none_of(plans, [&](const auto &other) {
            return fits(other) && isPlainer(other, plan);
          }))
        seconds.push_back(plan.seconds);
    std::ranges::sort(seconds);
    std::string error;
    auto answer = searchPlan(request, error);
    ASSERT_TRUE(answer) << error;
    size_t ranked = std::min(kRankedPlans, seconds.size());
    ASSERT_EQ(answer->best.size(), ranked);
    for (size_t i = 0; i < ranked; ++i)
      EXPECT_DOUBLE_EQ(answer->best[i].seconds, seconds[i]) << memory;
    EXPECT_EQ(answer->counts.unlikely, 0U);
    EXPECT_FALSE(answer->isCut);
    EXPECT_LE(answer->leastStep, answer->best.front().seconds);
    if (memory == 0)
      EXPECT_LT(answer->counts.planned, plans.size()); // some are cut by bounds
  }
}

TEST(PlanCandidate, AShellReadsItsFlags) {
  PlanCandidate candidate;
  candidate.schedule = "gpipe";
  candidate.remat = "none;chunk0:full";
  candidate.shardOptimizer = true;
  EXPECT_EQ(flagsOf(candidate),
            "--mesh stage=1 --schedule gpipe --repeats 1 --microbatches 1 "
            "--remat 'none;chunk0:full' --shard-optimizer");
}

std::vector<std::string> flagsOfBest(const SearchAnswer &answer) {
  std::vector<std::string> flags;
  for (const PlannedCandidate &plan : answer.best)
    flags.push_back(flagsOf(plan.candidate));
  return flags;
}

TEST(Search, HasOneResultForAnyThreads) {
  SearchRequest request = pipelineRequest();
  request.limits.plans = 12;
  std::string error;
  request.limits.threads = 1;
  auto one = searchPlan(request, error);
  request.limits.threads = 3;
  auto three = searchPlan(request, error);
  ASSERT_TRUE(one && three) << error;
  EXPECT_EQ(flagsOfBest(*one), flagsOfBest(*three));
  EXPECT_EQ(one->best.size(), kRankedPlans);
}

TEST(Search, RanksPlansByPartsOfTheirSteps) {
  SearchRequest request = pipelineRequest();
  request.limits.plans = 12;
  std::string error;
  auto answer = searchPlan(request, error);
  ASSERT_TRUE(answer) << error;
  double before = 0;
  for (const PlannedCandidate &plan : answer->best) {
    EXPECT_NEAR(plan.parts.seconds(), plan.seconds, 1e-9 * plan.seconds);
    EXPECT_GT(plan.parts.peak, 0);
    EXPECT_GE(plan.seconds, before);
    before = plan.seconds;
  }
  for (size_t i = 1; i < answer->front.size(); ++i)
    EXPECT_LT(answer->front[i].bytes, answer->front[i - 1].bytes);
}

TEST(Search, KeepsWhatIsFixed) {
  SearchRequest request = pipelineRequest();
  fix(request, MeshAxis::Stage, 2);
  request.fixed.schedule = "gpipe";
  request.fixed.microbatches = 4;
  request.fixed.accumulate.reset();
  request.limits.plans = 12;
  std::string error;
  auto answer = searchPlan(request, error);
  ASSERT_TRUE(answer) << error;
  for (const PlannedCandidate &plan : answer->best) {
    EXPECT_EQ(plan.candidate.stages, 2);
    EXPECT_EQ(plan.candidate.data, 2);
    EXPECT_EQ(plan.candidate.schedule, "gpipe");
    EXPECT_EQ(plan.candidate.repeats, 2);
    EXPECT_EQ(plan.candidate.microbatches, 4);
    EXPECT_EQ(plan.candidate.remat, "minimal");
  }
}

TEST(Search, HasNoPipelineOnOneRank) {
  SearchRequest request = requestOf("simple", 1, 8);
  request.fixed.remat = "none";
  std::string error;
  auto answer = searchPlan(request, error);
  ASSERT_TRUE(answer) << error;
  ASSERT_FALSE(answer->best.empty());
  for (const PlannedCandidate &plan : answer->best) {
    EXPECT_EQ(plan.candidate.repeats, 1) << flagsOf(plan.candidate);
    EXPECT_FALSE(plan.candidate.splitBackward) << flagsOf(plan.candidate);
  }
}

TEST(Search, RanksThePlainestOfPlansThatAreAlike) {
  SearchRequest request = requestOf("simple", 1, 8);
  request.fixed.remat = "none";
  request.plan.compiler.memory = int64_t(1) << 40; // so there are chunks
  std::string error;
  auto answer = searchPlan(request, error);
  ASSERT_TRUE(answer) << error;
  ASSERT_FALSE(answer->best.empty());
  EXPECT_GT(answer->counts.planned, answer->best.size());
  for (const PlannedCandidate &plan : answer->best)
    for (const PlannedCandidate &other : answer->best)
      EXPECT_FALSE(isPlainer(other, plan))
          << flagsOf(plan.candidate) << " beside " << flagsOf(other.candidate);
}

TEST(Search, NamesTheNearestPlanWhereNoneFits) {
  SearchRequest request = pipelineRequest();
  request.plan.compiler.memory = 1000;
  std::string error;
  auto answer = searchPlan(request, error);
  ASSERT_TRUE(answer) << error;
  EXPECT_TRUE(answer->best.empty());
  ASSERT_TRUE(answer->nearest);
  EXPECT_GT(answer->nearest->bytes, 1000);
  EXPECT_EQ(answer->counts.slower, 0U);
}

TEST(Search, RefusesAxesThatDoNotFit) {
  SearchRequest request = pipelineRequest();
  fix(request, MeshAxis::Stage, 8);
  EXPECT_EQ(checkSearch(request), "'mesh': expected at most 4 ranks, one for "
                                  "each device, got axes with 8");
  fix(request, MeshAxis::Stage, 3);
  EXPECT_EQ(checkSearch(request),
            "'devices': expected a multiple of the 3 ranks of the axes that "
            "'mesh' fixes, got 4");
}

TEST(Search, SaysWhyThereIsNoCandidate) {
  SearchRequest request = pipelineRequest();
  request.batchSize = 3;
  request.devices = 5;
  fix(request, MeshAxis::Stage, 1);
  std::string error;
  EXPECT_FALSE(searchPlan(request, error));
  EXPECT_EQ(error, "'devices': expected a number of ranks that the batch and "
                   "the layers can be divided over, got 5");
}

TEST(Search, EndsWhenItsTimeIsOver) {
  SearchRequest request = pipelineRequest();
  request.limits.seconds = 0;
  std::string error;
  EXPECT_FALSE(searchPlan(request, error));
  EXPECT_EQ(error, "'search': the time was over before there was a plan");
}

} // namespace

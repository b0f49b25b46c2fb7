// SPDX-License-Identifier: Apache-2.0
//
// The runs that a search considers.
#include "tools/planner/search/SearchRequest.h"

#include "ir/rota/Rota.h"
#include "runtime/text/Text.h"
#include "tools/planner/search/ScheduleForms.h"

#include <algorithm>
#include <cmath>

namespace rota {
namespace {

using Axis = mlir::rota::MeshAxis;

constexpr int64_t kLeastContextPart = 1024; // tokens
constexpr int64_t kMostTokens = 16384;      // of a microbatch on a rank
constexpr int64_t kMostTimeline = 1 << 16;  // compute actions of a direction
constexpr int64_t kSingleStageMicrobatches = 8;

std::vector<int64_t> divisorsOf(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t i = 1; i * i <= number; ++i)
    if (number % i == 0) {
      divisors.push_back(i);
      if (i * i != number)
        divisors.push_back(number / i);
    }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

/// The sizes of an axis: the fixed one, or `open` of the divisors.
template <typename Open>
std::vector<int64_t> sizesOf(const SearchRequest &request, Axis axis,
                             int64_t ranks, Open open) {
  std::vector<int64_t> sizes;
  std::optional<int64_t> fixed = request.fixed.axis(axis);
  for (int64_t size : divisorsOf(ranks))
    if (fixed ? size == *fixed : open(size))
      sizes.push_back(size);
  return sizes;
}

/// How unlikely a division is to be that of the best plan.
double unlikelihood(const LayerDivision &division, int64_t nodeDevices) {
  double beyond = double(division.ranks()) / double(nodeDevices);
  return std::log2(double(division.context)) +
         std::log2(double(division.sequences)) + (division.tensor > 1 ? 2 : 0) +
         std::max(0.0, std::log2(beyond));
}

/// Writes the candidates of one division.
class Enumeration {
public:
  Enumeration(const SearchRequest &request, const SearchModel &model,
              const LayerDivision &division,
              const std::function<void(const PlanCandidate &)> &visit)
      : request(request), fixed(request.fixed), model(model), visit(visit) {
    candidate.layer = division;
    candidate.exchange = searchedExchange(request);
  }

  void run() {
    int64_t ranks = request.devices / candidate.layer.ranks();
    auto any = [](int64_t) { return true; };
    for (int64_t stages : sizesOf(request, Axis::Stage, ranks, any))
      for (int64_t fsdp : sizesOf(request, Axis::Fsdp, ranks / stages, any)) {
        candidate.stages = stages;
        candidate.fsdp = fsdp;
        candidate.data = ranks / stages / fsdp;
        auto data = fixed.axis(Axis::Data);
        if (stages <= model.layers + 2 && (!data || *data == candidate.data))
          chooseOptimizer();
      }
  }

private:
  void chooseOptimizer() {
    bool hasReplicas =
        candidate.data * candidate.layer.ranks() > 1; // besides stage and fsdp
    candidate.shardOptimizer =
        hasReplicas && fixed.shardOptimizer.value_or(true);
    int64_t parts = candidate.data * candidate.fsdp * candidate.layer.expert *
                    candidate.layer.sequences;
    if (request.batchSize % parts == 0)
      chooseRepeats(request.batchSize / parts);
  }

  /// `passes`: microbatches of all accumulation steps.
  void chooseRepeats(int64_t passes) {
    for (int64_t repeats : repeatsOf()) {
      int64_t chunks = candidate.stages * repeats;
      bool isDivided = chunks <= model.layers || chunks == model.layers + 2;
      if (!isDivided || (fixed.repeats && *fixed.repeats != repeats))
        continue;
      candidate.repeats = repeats;
      bool hasMicrobatches = passes > candidate.stages;
      for (const ScheduleForm &form :
           formsOf(candidate.stages > 1, repeats > 1, hasMicrobatches))
        chooseSchedule(form, passes);
    }
  }

  /// Whether nothing is sent that an order of actions could hide: then more
  /// chunks and other orders change the step by rounding alone.
  bool isAlone() const {
    return candidate.stages * candidate.data * candidate.fsdp *
               candidate.layer.expert * candidate.layer.context ==
           1;
  }

  std::vector<int64_t> repeatsOf() const {
    if (fixed.repeats)
      return {*fixed.repeats};
    if (candidate.stages > 1)
      return {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16};
    // With a bound on memory, chunks may have policies of their own.
    if (isAlone() && request.plan.compiler.memory == 0)
      return {1};
    std::vector<int64_t> repeats = {1};
    for (int64_t each : {4, 2, 1})
      repeats.push_back((model.layers + each - 1) / each);
    repeats.push_back(model.layers + 2);
    std::sort(repeats.begin(), repeats.end());
    repeats.erase(std::unique(repeats.begin(), repeats.end()), repeats.end());
    return repeats;
  }

  std::vector<ScheduleForm> formsOf(bool hasStages, bool hasRepeats,
                                    bool hasMicrobatches) const {
    using Forms = std::vector<ScheduleForm>;
    static const Forms single[2][2] = {
        {scheduleForms(false, false, false), scheduleForms(false, false, true)},
        {scheduleForms(false, true, false), scheduleForms(false, true, true)}};
    static const Forms several[2] = {scheduleForms(true, false, true),
                                     scheduleForms(true, true, true)};
    if (!fixed.schedule)
      return hasStages ? several[hasRepeats]
                       : single[hasRepeats][hasMicrobatches];
    auto form = scheduleForm(*fixed.schedule, hasStages, hasRepeats);
    return form ? std::vector{*form} : std::vector<ScheduleForm>();
  }

  void chooseSchedule(const ScheduleForm &form, int64_t passes) {
    candidate.schedule = form.schedule->name;
    candidate.placement = form.schedule->rule.placement.value_or(
        fixed.placement.value_or(pipe::Placement::Loop));
    if (fixed.placement && candidate.placement != *fixed.placement)
      return;
    if (fixed.splitBackward && !*fixed.splitBackward && form.splitsBackward)
      return;
    if (isAlone() && form.splitsBackward && !fixed.schedule &&
        !fixed.splitBackward)
      return;
    candidate.splitBackward =
        form.splitsBackward || fixed.splitBackward.value_or(false);
    for (int64_t accumulate : accumulationsOf(form, passes)) {
      candidate.accumulate = accumulate;
      candidate.microbatches = passes / accumulate;
      if (takesShape(*form.schedule, candidate.shape()))
        chooseGathers();
    }
  }

  /// Accumulation steps. Without a choice of the user: one where a rank holds
  /// no more for more microbatches, else any power of two.
  std::vector<int64_t> accumulationsOf(const ScheduleForm &form,
                                       int64_t passes) const {
    if (fixed.accumulate)
      return divides(*fixed.accumulate, passes);
    if (fixed.microbatches)
      return passes % *fixed.microbatches == 0
                 ? std::vector{passes / *fixed.microbatches}
                 : std::vector<int64_t>();
    int64_t chunks = candidate.stages * candidate.repeats;
    std::vector<int64_t> steps;
    for (int64_t step = 1; passes % step == 0; step *= 2) {
      int64_t microbatches = passes / step;
      bool isLong = chunks * microbatches > kMostTimeline;
      // More microbatches on one stage change nothing.
      bool isEnough = candidate.stages == 1 && !form.growsWithMicrobatches &&
                      microbatches >= 2 * kSingleStageMicrobatches &&
                      microbatches % 2 == 0;
      // One microbatch on one stage has the same order under all schedules.
      bool isSame = candidate.stages == 1 && form.growsWithMicrobatches &&
                    microbatches == 1 && passes > 1 && !fixed.schedule;
      if (isLong || isEnough || isSame)
        continue;
      steps.push_back(step);
      if (!form.growsWithMicrobatches || microbatches <= candidate.stages)
        break;
    }
    return steps;
  }

  std::vector<int64_t> divides(int64_t accumulate, int64_t passes) const {
    bool fits =
        passes % accumulate == 0 &&
        (!fixed.microbatches || *fixed.microbatches == passes / accumulate);
    return fits ? std::vector{accumulate} : std::vector<int64_t>();
  }

  void chooseGathers() {
    using pipe::GatherMode;
    candidate.split = fixed.split.value_or(pipe::LayerSplit::Even);
    std::vector<GatherMode> modes = {GatherMode::Auto};
    if (candidate.fsdp > 1 && fixed.gathers) {
      modes = {*fixed.gathers};
    } else if (candidate.fsdp > 1) {
      modes = {GatherMode::Once};
      if (candidate.repeats > 1)
        modes.push_back(GatherMode::PerRepeat);
      // It adds gradients in another order. Chunks of a layer have it already
      // where they are used for one microbatch.
      bool isSame = candidate.microbatches == 1 &&
                    candidate.stages * candidate.repeats >= model.layers;
      if (request.plan.compiler.memory > 0 && !isSame)
        modes.push_back(GatherMode::PerLayer);
    }
    for (GatherMode mode : modes) {
      candidate.gathers = mode;
      if (mode != GatherMode::PerRepeat || candidate.repeats > 1)
        visit(candidate);
    }
  }

  const SearchRequest &request;
  const FixedChoices &fixed;
  const SearchModel &model;
  const std::function<void(const PlanCandidate &)> &visit;
  PlanCandidate candidate;
};

} // namespace

std::string checkSearch(const SearchRequest &request) {
  int64_t product = 1;
  for (const std::optional<int64_t> &size : request.fixed.axes)
    product *= size.value_or(1);
  if (request.devices < product)
    return "'mesh': expected at most " + counted(request.devices, "rank") +
           ", one for each device, got axes with " + std::to_string(product);
  if (request.devices % product != 0)
    return "'devices': expected a multiple of the " + std::to_string(product) +
           " ranks of the axes that 'mesh' fixes, got " +
           std::to_string(request.devices);
  return "";
}

mlir::rota::ContextExchange searchedExchange(const SearchRequest &request) {
  return request.fixed.exchange.value_or(mlir::rota::ContextExchange::Auto);
}

std::vector<LayerDivision> searchedDivisions(const SearchRequest &request,
                                             const SearchModel &model) {
  int64_t devices = request.devices, node = request.nodeDevices;
  int64_t length = request.plan.compiler.build.sequenceLength;
  auto inNode = [&](int64_t size) { return size <= node; };
  auto experts = sizesOf(request, Axis::Expert, devices, [&](int64_t size) {
    return size == 1 || (model.experts > 0 && model.experts % size == 0);
  });
  auto contexts = sizesOf(request, Axis::Context, devices, [&](int64_t size) {
    return size == 1 ||
           (length % size == 0 && length / size >= kLeastContextPart);
  });
  auto sequences = sizesOf(request, Axis::Sequence, devices, inNode);
  auto tensors = sizesOf(request, Axis::Tensor, devices, inNode);
  bool fixesBoth =
      request.fixed.axis(Axis::Sequence) && request.fixed.axis(Axis::Tensor);
  std::vector<LayerDivision> divisions;
  for (int64_t expert : experts)
    for (int64_t context : contexts)
      for (int64_t sequence : sequences)
        for (int64_t tensor : tensors) {
          LayerDivision division{expert, context, sequence, tensor};
          bool hasBoth = sequence > 1 && tensor > 1 && !fixesBoth;
          if (hasBoth || devices % division.ranks() != 0 ||
              length % (context * sequence) != 0)
            continue;
          for (int64_t each : divisorsOf(request.batchSize)) {
            division.sequences = each;
            bool isSmall = each == 1 || each * length / context <= kMostTokens;
            if (isSmall && request.batchSize % (each * expert) == 0)
              divisions.push_back(division);
          }
        }
  std::ranges::sort(divisions, {}, [&](const LayerDivision &division) {
    return std::pair(unlikelihood(division, node), division);
  });
  return divisions;
}

void forEachCandidate(const SearchRequest &request, const SearchModel &model,
                      const LayerDivision &division,
                      const std::function<void(const PlanCandidate &)> &visit) {
  Enumeration(request, model, division, visit).run();
}

} // namespace rota

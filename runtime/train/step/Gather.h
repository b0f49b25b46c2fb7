// SPDX-License-Identifier: Apache-2.0
//
// Numbers and text from all ranks. Every rank of the group calls each function,
// in the same order, and not while its timeline runs.
#ifndef ROTA_RUNTIME_TRAIN_STEP_GATHER_H
#define ROTA_RUNTIME_TRAIN_STEP_GATHER_H

#include "runtime/train/rank/Rank.h"

#include <span>
#include <string>
#include <vector>

namespace rota {

/// The `own` of each rank of the group, all of one length, one after the other,
/// on every rank.
std::vector<double> gatherNumbers(Rank &rank, const RankGroup &group,
                                  const std::vector<double> &own);

/// The same of all ranks, in two steps: a rank starts it and waits for the
/// numbers of the others when it needs them.
class NumberGather {
public:
  explicit NumberGather(Rank &rank);

  bool isOpen() const { return open; }
  void start(std::vector<double> own);
  /// Once after each start.
  std::vector<double> finish();

private:
  struct Numbers {
    std::vector<double> own, all;
  };
  Rank &rank;
  const std::shared_ptr<Numbers> numbers; // the rank keeps them
  Request request = 0;
  bool open = false;
};

/// The `own` of every rank, on rank 0; nothing on the others.
std::vector<std::string> gatherTexts(Rank &rank, const std::string &own);

/// The text of rank 0, on every rank.
std::string textOfRankZero(Rank &rank, const std::string &own);

/// One half of a message of any length between two hosts: `data` of rank `from`
/// comes to that of rank `to`.
void sendBytes(Rank &rank, int to, const char *data, int64_t bytes);
void receiveBytes(Rank &rank, int from, char *data, int64_t bytes);

/// For each of `own`, as many on each rank, whether it is true on one rank or
/// more; on every rank.
std::vector<bool> decideTogether(Rank &rank, const std::vector<bool> &own);

/// A part of the loss: "main" or the name of a term.
struct LossPart {
  std::string name;
  double value = 0.0;
};

/// Sum and weight of the main loss, the sums of its terms, each times its
/// coefficient, and the auxiliary losses.
struct Loss {
  double sum = 0.0;
  double weight = 0.0;
  std::vector<double> terms; // of Program::lossTerms
  double auxiliary = 0.0;

  /// The mean of the main loss: that of a validation. 0 where nothing counts.
  double main() const { return overWeight(sum); }
  /// The mean of what trains: main loss, terms and auxiliary losses. All but
  /// the auxiliary ones are 0 where nothing counts.
  double mean() const;
  /// The main loss and its terms; nothing where the program has no terms.
  std::vector<LossPart> parts(const Program &program) const;

private:
  double overWeight(double value) const {
    return weight > 0.0 ? value / weight : 0.0;
  }
};

/// Where the device has the losses of all ranks: RuntimeMemory::losses.
StepLosses stepLosses(Rank &rank);

/// LossGather::start of the last run, and the wait for it, both in the order of
/// the device's work.
void startLoss(Rank &rank, int64_t accumulationStep = 0);

/// The loss over all microbatches, ranks and the first `accumulationSteps`, on
/// every rank: in f64, by accumulation step, microbatch, call of the loss and
/// rank; auxiliary losses by layer, microbatch, accumulation step and rank.
/// `result`: the block of RuntimeMemory::result behind a startLoss of each of
/// these accumulation steps. Throws RunError when one is not finite, unless the
/// step `isSkipped`.
Loss finishLoss(Rank &rank, std::span<const char> result,
                int64_t accumulationSteps, bool isSkipped = false);

/// Both for the first `accumulationSteps`, of which startLoss has brought all
/// but the last.
Loss gatherLoss(Rank &rank, int64_t accumulationSteps = 1);

/// The measured bubble share, in two steps: a rank starts it and goes on, and
/// rank 0 waits for the others when it needs the share.
class BubbleGather {
public:
  /// `hasBarrier`: the share of a step between two barriers, not of a step in
  /// the steady state.
  explicit BubbleGather(Rank &rank, bool hasBarrier = true);

  bool isOpen() const { return open; }
  /// `seconds`: of each of this rank's actions.
  void start(std::vector<double> seconds);
  /// Once after each start. The share, a mean over the pipelines, on rank 0; 0
  /// on the others.
  double finish();

private:
  double share() const;

  Rank &rank;
  const bool hasBarrier;
  // Of each rank; on others than rank 0, their own. The rank keeps them.
  using Rows = std::vector<std::vector<double>>;
  const std::shared_ptr<Rows> rows;
  std::vector<Request> requests;
  bool open = false;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_GATHER_H

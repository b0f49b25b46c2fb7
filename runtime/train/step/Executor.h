// SPDX-License-Identifier: Apache-2.0
//
// Runs a rank's timeline: actions, waits, calls. There is no schedule in here.
#ifndef ROTA_RUNTIME_TRAIN_STEP_EXECUTOR_H
#define ROTA_RUNTIME_TRAIN_STEP_EXECUTOR_H

#include "runtime/trace/ChromeTrace.h"
#include "runtime/train/rank/PairThread.h"
#include "runtime/train/step/LossGather.h"

#include <array>
#include <functional>

namespace rota {

/// The times of a rank's transfers of one kind.
struct TransferTimes {
  int64_t count = 0;
  double seconds = 0.0; // in which bytes moved
  double waited = 0.0;  // of these, while the rank waited for nothing else

  /// The share of their time that was hidden behind computing: 1 where none
  /// took any.
  double hidden() const { return seconds > 0 ? 1.0 - waited / seconds : 1.0; }
  TransferTimes &operator+=(const TransferTimes &other) {
    count += other.count;
    seconds += other.seconds;
    waited += other.waited;
    return *this;
  }
};

/// What a rank does inside a training run; functions that are empty do nothing.
struct RunHooks {
  /// Before the run reads parameters that other stages send, and adds to
  /// gradients.
  std::function<void()> beforeUse = {};
  /// The rank's losses, auxiliary sums and tables of the run are written. All
  /// ranks of a pipeline come to this point before any of them has all its
  /// gradients, since each backward of a microbatch follows its loss.
  std::function<void()> lossesKnown = {};
};

class Executor {
public:
  enum class Mode { Train, Evaluate };

  /// The events of the first `tracedRuns` runs are kept for a trace; where
  /// there are any, every rank makes its executor, so that their times begin
  /// together.
  Executor(Rank &rank, int64_t tracedRuns);

  /// Runs the timeline once; in training, for a step of one accumulation step,
  /// after what its forwards need first, the means of what they observe, and
  /// with what its first backward needs, the cotangents of auxiliary losses.
  /// Evaluation, which makes these means out of its own microbatches, runs each
  /// action's evalCalls, gathers weights and hands over activations; it clears
  /// nothing, sends nothing backward and reduces and copies nothing. Throws
  /// RunError that names rank, stage, chunk, microbatch, action and layer when
  /// a task fails.
  void run(Mode mode, const RunHooks &hooks = {});
  /// To be called before the first run of a step of several accumulation steps:
  /// their cotangents of auxiliary losses need the weight of all accumulation
  /// steps, and means their forwards. load(accumulationStep) brings the data.
  void prepare(FunctionRef<void(int64_t accumulationStep)> load);
  /// A training run while the device records: nothing is measured.
  void record();
  /// Waits for the last run and notes its times, before the device may forget
  /// them.
  void settle();

  /// Mean seconds of each action over the training runs so far, without the
  /// first (which touches new memory) once there is another.
  std::vector<double> meanSeconds();

  /// Of the training runs so far: by ActionKind, messages and transfers.
  using KindTimes = std::array<TransferTimes, kActionKindCount>;
  const KindTimes &transfers() const { return kindTimes; }

  /// The actions of the first runs, when recording.
  const std::vector<TraceEvent> &events();

private:
  /// The work that an action has asked the device for.
  struct Span {
    int action;
    Device::TimePoint begin, end;
  };

  struct MeasuredRun {
    bool isKnown = true;
    bool training = false;
    int64_t number = 0; // of all runs
    std::vector<Span> spans;
  };

  /// What an action's calls have done.
  struct Work {
    Span span;
    const Call *failed = nullptr; // the call behind which a failure showed
  };

  void findMarks();
  void walk(const RunHooks &hooks);
  void startWeights(int64_t accumulationStep);
  void observe(int64_t accumulationStep);
  void findCotangents();
  void writeCotangentFactors();
  const std::vector<Call> &callsOf(int number) const;
  bool runsAtOnce(int number) const;
  void compute(int number);
  void computePair(int number);
  Work work(int number, RotaContext *context);
  void call(RotaContext *context, const Call &call,
            std::span<const int64_t> slots, int microbatch);
  void checkFailed(const Work &work, RotaContext *context);
  bool happens(ActionKind kind) const;
  void start(int number);
  void finish(int number);
  void note(int number, TransferTime span, double waitedFrom);

  Rank &rank;
  const Stage &stage;
  const int actionCount;
  const int64_t tracedRuns;
  // Of the timeline, or actionCount: the first action that reads parameters of
  // other stages or computes; the first that makes gradients; the last that
  // writes losses, or if none does, the first after which they may be gathered.
  int firstUse, firstGradient, lastLoss;
  LossGather weights;          // those before a step with auxiliary losses
  bool cotangentsOpen = false; // they wait for these weights
  Mode mode = Mode::Train;
  bool measures = true;
  bool observes = false; // runs forwards alone
  int64_t runs = 0;
  int64_t trainingRuns = 0; // whose times are known
  // Null where the stage has no pairs.
  std::unique_ptr<PairThread> pairThread;
  // When every rank was ready, on the communicator's clock and the device's.
  double transferOrigin, computeOrigin;
  // Of this run, and of the one before, whose times are not read yet: a host
  // that is ahead of its device does not wait for them.
  MeasuredRun current, previous;
  // Of each action, for messages; the rank has them too.
  std::shared_ptr<const std::vector<std::string>> positions;
  std::vector<int> peers;                     // of each action: a rank
  std::vector<std::vector<Request>> requests; // of each action, not waited for
  std::vector<double> seconds, firstSeconds;  // of each action, training
  KindTimes kindTimes;
  std::vector<TraceEvent> recorded;
};

/// The bubble share that measured times give: 1 - busy / (stages * makespan),
/// where the makespan is the longest path through the timelines with each
/// action's seconds [stage][action], as if each rank had a core of its own. So
/// it can be compared with the plan although ranks share this machine's cores.
/// Without a step barrier, a step's time in the steady state stands for the
/// makespan.
double measuredBubble(const Program &program,
                      const std::vector<std::vector<double>> &seconds,
                      bool hasBarrier = true);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_EXECUTOR_H

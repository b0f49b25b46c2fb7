// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/Messages.h"
#include "runtime/collective/local/LocalNetwork.h"
#include "runtime/threads/StartThread.h"
#include "tools/Median.h"
#include "tools/measure/Team.h"

namespace rota {
namespace {

constexpr int64_t kSmallBytes = 256; // of a rank's part
/// Transfers that are asked for at once where asking does not wait for them.
constexpr int kAskedAtOnce = 20;

/// One rank's end of what is measured.
class RankEnd {
public:
  RankEnd(MessageRank &memory, LocalNetwork &steps, int rank)
      : memory(memory), owned(memory.connect()), communicator(*owned),
        steps(steps.at(rank)), group(groupOf({{"all", communicator.size()}},
                                             communicator.rank(), {0})) {}

  void gather(int64_t bytes) {
    communicator.run(Stream::Weights,
                     collective(Collective::Kind::AllGather, bytes), group,
                     memory.part->at(0), memory.whole->at(0));
  }
  void scatter(int64_t bytes) {
    communicator.run(Stream::Gradients,
                     collective(Collective::Kind::ReduceScatter, bytes), group,
                     memory.whole->at(0), memory.part->at(0));
  }
  /// Sends the part around a ring.
  void pass(int64_t bytes) {
    int ranks = communicator.size(), rank = communicator.rank();
    Request sent = communicator.send(Stream::Forward, (rank + 1) % ranks,
                                     memory.part->at(0), bytes);
    communicator.wait(communicator.receive(Stream::Forward,
                                           (rank + ranks - 1) % ranks,
                                           memory.whole->at(0), bytes));
    communicator.wait(sent);
  }

  /// The median of the seconds of `run`. Rank 0 says how often all ranks run,
  /// by a sum on the host.
  double secondsOf(void (RankEnd::*run)(int64_t), int64_t bytes,
                   double seconds) {
    std::vector<double> samples;
    WallClock whole;
    int count = memory.finish ? kAskedAtOnce : 1;
    auto isEnough = [&] {
      return communicator.rank() == 0 && samples.size() >= 5 &&
             whole.seconds() > seconds;
    };
    while (!isOver(isEnough())) {
      WallClock each;
      for (int i = 0; i < count; ++i)
        (this->*run)(bytes);
      if (memory.finish)
        memory.finish();
      samples.push_back(each.seconds() / count);
    }
    return median(samples);
  }

private:
  Collective collective(Collective::Kind kind, int64_t bytes) const {
    Collective collective;
    collective.kind = kind;
    collective.axes = {0};
    collective.size = bytes / 4 * communicator.size();
    return collective;
  }
  bool isOver(float over) {
    Collective sum;
    sum.kind = Collective::Kind::AllReduce;
    sum.axes = {0};
    steps.run(Stream::Step, sum, group, &over, &over);
    return over > 0;
  }

  MessageRank &memory;
  std::shared_ptr<Communicator> owned;
  Communicator &communicator, &steps;
  RankGroup group;
};

/// All times, of which rank 0 has the same part as any other.
MessageRates timeRank(RankEnd &rank, double ranks, int64_t largeBytes,
                      double seconds) {
  auto measure = [&](void (RankEnd::*run)(int64_t), int64_t bytes) {
    return rank.secondsOf(run, bytes, seconds / 6);
  };
  double steps = ranks - 1, bytes = 0, time = 0, latency = 0;
  for (auto run : {&RankEnd::gather, &RankEnd::scatter}) {
    latency += measure(run, kSmallBytes) / steps;
    time += measure(run, largeBytes);
    bytes += steps * double(largeBytes);
  }
  latency = (latency + measure(&RankEnd::pass, kSmallBytes)) / 3;
  time += measure(&RankEnd::pass, largeBytes);
  bytes += double(largeBytes);
  return {bytes / time, latency};
}

} // namespace

MessageRates timeMessages(std::vector<MessageRank> ranks, double seconds) {
  auto count = int(ranks.size());
  LocalNetwork steps(count);
  MessageRates times;
  runTogether("messages of ranks", count, [&](int number) {
    try {
      MessageRank &memory = ranks[number];
      RankEnd rank(memory, steps, number);
      MessageRates own = timeRank(rank, count, memory.part->bytes(), seconds);
      if (number == 0)
        times = own;
    } catch (const std::exception &failure) {
      steps.at(number).fail(failure.what());
      throw;
    }
  });
  return times;
}

} // namespace rota

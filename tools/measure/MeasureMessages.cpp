// SPDX-License-Identifier: Apache-2.0
//
// Messages and collectives between ranks that are threads of one process.
// Compiled with exceptions.
#include "runtime/collective/local/LocalNetwork.h"
#include "tools/measure/MeasureHost.h"
#include "tools/measure/Team.h"
#include "tools/measure/WorkMemory.h"

#include <algorithm>
#include <thread>

namespace rota {
namespace {

constexpr int kMostRanks = 8;
constexpr int64_t kLargeBytes = int64_t(8) << 20; // of a rank's part
constexpr int64_t kSmallBytes = 256;

/// One rank's end of what is measured.
struct RankEnd {
  Communicator &communicator;
  RankGroup group;
  WorkMemory part, whole;

  RankEnd(Communicator &communicator, int64_t bytes)
      : communicator(communicator),
        group(
            groupOf({{"all", communicator.size()}}, communicator.rank(), {0})),
        part(bytes), whole(bytes * communicator.size()) {}

  void gather() {
    communicator.run(Stream::Weights, collective(Collective::Kind::AllGather),
                     group, part.at(0), whole.at(0));
  }
  void scatter() {
    communicator.run(Stream::Gradients,
                     collective(Collective::Kind::ReduceScatter), group,
                     whole.at(0), part.at(0));
  }
  /// Sends the part around a ring.
  void pass() {
    int ranks = communicator.size(), rank = communicator.rank();
    Request sent = communicator.send(Stream::Forward, (rank + 1) % ranks,
                                     part.at(0), part.bytes());
    communicator.wait(communicator.receive(Stream::Forward,
                                           (rank + ranks - 1) % ranks,
                                           whole.at(0), part.bytes()));
    communicator.wait(sent);
  }

private:
  Collective collective(Collective::Kind kind) const {
    Collective collective;
    collective.kind = kind;
    collective.axes = {0};
    collective.size = whole.bytes() / 4;
    return collective;
  }
};

/// Seconds of `run` on `ranks` ranks, each on a thread. Rank 0 says how often
/// all of them run, by a sum.
double secondsOf(int ranks, int64_t bytes, double seconds,
                 void (RankEnd::*run)()) {
  LocalNetwork network(ranks);
  double result = 0;
  std::vector<std::thread> threads;
  for (int number = 0; number < ranks; ++number)
    threads.emplace_back([&, number] {
      RankEnd rank(network.at(number), bytes);
      Collective sum;
      sum.kind = Collective::Kind::AllReduce;
      sum.axes = {0};
      auto isOver = [&](float over) {
        rank.communicator.run(Stream::Step, sum, rank.group, &over, &over);
        return over > 0;
      };
      if (number > 0) {
        while (!isOver(0))
          (rank.*run)();
        return;
      }
      std::vector<double> samples;
      WallClock whole;
      while (!isOver(samples.size() >= 5 && whole.seconds() > seconds)) {
        WallClock each;
        (rank.*run)();
        samples.push_back(each.seconds());
      }
      result = median(samples);
    });
  for (std::thread &thread : threads)
    thread.join();
  return result;
}

} // namespace

void measureMessages(mlir::rota::Machine &machine, int cores, double seconds) {
  int ranks = std::clamp(cores, 2, kMostRanks);
  auto measure = [&](int64_t bytes, void (RankEnd::*run)()) {
    return secondsOf(ranks, bytes, seconds / 6, run);
  };
  double steps = ranks - 1, bytes = 0, time = 0, latency = 0;
  for (auto run : {&RankEnd::gather, &RankEnd::scatter}) {
    latency += measure(kSmallBytes, run) / steps;
    time += measure(kLargeBytes, run);
    bytes += steps * double(kLargeBytes);
  }
  latency = (latency + measure(kSmallBytes, &RankEnd::pass)) / 3;
  time += measure(kLargeBytes, &RankEnd::pass);
  bytes += double(kLargeBytes);
  machine.network = {{"memory of the host", 0, bytes / time, latency, 1, 1}};
  machine.hostBytesPerSecond = bytes / time;
  machine.hostLatency = latency;
}

} // namespace rota

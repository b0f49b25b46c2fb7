// SPDX-License-Identifier: Apache-2.0
//
// Sends and receives between ranks of one process. A channel is one direction
// of one pair of ranks, first in, first out. A send leaves its source, a
// receive leaves its place; neither blocks, and whoever comes second copies.
#ifndef ROTA_RUNTIME_COLLECTIVE_LOCAL_CHANNELS_H
#define ROTA_RUNTIME_COLLECTIVE_LOCAL_CHANNELS_H

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace rota {

class Channels {
public:
  /// `actions[r]` is the number of actions of rank r.
  explicit Channels(const std::vector<int> &actions);

  /// Forgets all completions. No rank may be running.
  void reset();

  /// One half of a transfer: action `action` of rank `rank`.
  struct Half {
    int rank;
    int action;
    char *place;
    int64_t bytes;
  };
  void send(const Half &half, int destination, bool forward);
  void receive(const Half &half, int source, bool forward);

  /// Counts the action as completed without a transfer.
  void complete(int rank, int action);
  /// Sleeps until the action has completed, or until stop(): then false.
  bool wait(int rank, int action);
  /// Wakes all that wait: the run has failed.
  void stop();

private:
  struct Channel {
    std::mutex mutex;
    std::deque<Half> sends, receives; // at most one of them is not empty
  };
  struct Completions {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<char> done; // per action
    bool stopped = false;
  };
  Channel &channel(int source, int destination, bool forward);
  void transfer(const Half &source, const Half &destination);

  int ranks;
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<std::unique_ptr<Completions>> completions; // per rank
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_LOCAL_CHANNELS_H

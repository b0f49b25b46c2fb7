// SPDX-License-Identifier: Apache-2.0
//
// The rule by which messages between ranks arrive, for EventRun.
#ifndef ROTA_RUNTIME_PROGRAM_MESSAGECLOCK_H
#define ROTA_RUNTIME_PROGRAM_MESSAGECLOCK_H

#include "runtime/program/Action.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace rota {

/// A time that is not known yet.
inline constexpr double kNotYet = -1;

/// Arrival times of messages. Sends and receives of one channel, which is a
/// source, a destination and a direction, match in order. A message starts when
/// its send and its receive have run and the message before it has arrived.
class MessageClock {
  struct Channel {
    std::vector<double> sent, received, arrived;
  };

public:
  /// The time from the start of a message to its arrival.
  explicit MessageClock(double latency = 0) : latency(latency) {}

  /// A message, in its channel's order. Without a channel: no message.
  struct Message {
    const Channel *channel = nullptr;
    size_t index = 0;
  };

  /// Notes that `rank` runs a send or receive at `time`; `peer` is the rank at
  /// the other end.
  Message add(ActionKind kind, int rank, int peer, double time) {
    bool send = isSend(kind);
    Channel &channel = channels[keyOf(send ? rank : peer, send ? peer : rank,
                                      isForward(kind))];
    std::vector<double> &times = send ? channel.sent : channel.received;
    Message message{&channel, times.size()};
    times.push_back(time);
    while (channel.arrived.size() <
           std::min(channel.sent.size(), channel.received.size())) {
      size_t i = channel.arrived.size();
      double start = std::max(channel.sent[i], channel.received[i]);
      if (i > 0)
        start = std::max(start, channel.arrived[i - 1]);
      channel.arrived.push_back(start + latency);
    }
    return message;
  }

  /// kNotYet while a half of the message has not run.
  static double arrival(const Message &message) {
    return message.channel && message.index < message.channel->arrived.size()
               ? message.channel->arrived[message.index]
               : kNotYet;
  }

private:
  static uint64_t keyOf(int source, int destination, bool forward) {
    return uint64_t(source) << 33 | uint64_t(destination) << 1 | forward;
  }

  double latency;
  std::unordered_map<uint64_t, Channel> channels;
};

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_MESSAGECLOCK_H

// SPDX-License-Identifier: Apache-2.0
//
// Communication between ranks: messages between two, collectives in groups.
// README.md lists the implementations of the interface.
#ifndef ROTA_RUNTIME_COLLECTIVE_COMMUNICATOR_H
#define ROTA_RUNTIME_COLLECTIVE_COMMUNICATOR_H

#include "runtime/program/Action.h"
#include "runtime/program/Collective.h"
#include "runtime/program/Mesh.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rota {

class Recorder; // runtime/device/Device.h
class Turn;     // runtime/threads/Turn.h

/// Independent sequences of transfers. The n-th transfer of one stream and one
/// group (or pair and direction) on one rank belongs to the n-th on the others.
/// Transfers of different streams have no order, so that a gather that waits
/// for a slow rank delays no message.
enum class Stream : int {
  Task,      // collectives inside tasks
  PairTask,  // for the second half of a pair, whose first half has Task
  Weights,   // gathers of the timeline
  Gradients, // sums of the timeline
  Step,      // between two runs of the timelines
  Forward,   // messages of activations
  Backward,  // messages of cotangents
};
inline constexpr int kStreams = 7;

/// The stream of an action between ranks.
constexpr Stream streamOf(ActionKind kind) {
  switch (kind) {
  case ActionKind::Unshard:
  case ActionKind::Refresh:
    return Stream::Weights;
  case ActionKind::ReduceGrad:
  case ActionKind::SumGrad:
    return Stream::Gradients;
  default:
    return isForward(kind) ? Stream::Forward : Stream::Backward;
  }
}

/// The ranks that take part in a collective, in its order, and the position of
/// this rank among them.
struct RankGroup {
  std::vector<int> ranks;
  int index = 0;
  // Ranks along each of the collective's axes; only Permute reads them.
  std::vector<int64_t> sizes;
};

/// The group of `rank` along `axes` of `mesh`, the first of them slowest.
RankGroup groupOf(const std::vector<MeshAxis> &mesh, int rank,
                  const std::vector<int> &axes);

/// A transfer that was started. 0 is always complete.
using Request = int64_t;

/// The time in which a request moved bytes, on the clock of Communicator::now.
struct TransferTime {
  double begin = 0.0, end = 0.0;
};

/// One rank's end. Called from that rank's thread only; on CPUs, another one
/// may start and wait for what Stream::PairTask has, and copies, meanwhile.
/// Sums are made in the group's order, element by element, in f32 and rounded
/// once to the type (i32 in i32), so that the bits do not depend on timing or
/// backend. A maximum with a NaN among its terms is NaN. After a rank has
/// failed, every function that waits throws RunError with the first failure of
/// the run as its text, and no memory is read or written any more.
class Communicator {
public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Starts a collective of `group`. The caller leaves source and destination
  /// alone until it is complete. They are the same buffer only for AllReduce;
  /// for ReduceScatter without `accumulate` and AllGather with `outer` = 1, the
  /// part may be the rank's own part of the whole. Else they are apart.
  /// Transfers of one stream and one group also run in order: one may add to
  /// the result of the one before. Where a part's memory is longer than the
  /// part, ReduceScatter without `accumulate` and Slice fill the rest with
  /// zeros. In a group of one rank the transfer is a copy or an addition; it,
  /// too, runs while the caller goes on.
  virtual Request start(Stream stream, const Collective &collective,
                        const RankGroup &group, const void *source,
                        void *destination) = 0;

  /// Start one half of a message; neither blocks. The n-th send to a rank
  /// matches its n-th receive from here in the same stream, of the same size.
  virtual Request send(Stream stream, int peer, const void *source,
                       int64_t bytes) = 0;
  virtual Request receive(Stream stream, int peer, void *destination,
                          int64_t bytes) = 0;

  /// Starts a copy within this rank's memory. Copies run in any order.
  virtual Request copy(const void *source, void *destination,
                       int64_t bytes) = 0;

  /// Waits until the request is complete: the destination holds the result and
  /// the source may change. Returns the time in which it ran and forgets the
  /// request; a second wait returns at once with an empty time.
  virtual TransferTime wait(Request request) = 0;
  /// As `wait`, for a thread that needs its turn afterwards. The turn may have
  /// come then.
  virtual TransferTime waitForTurn(Request request, Turn &) {
    return wait(request);
  }
  /// True when `wait` would not wait.
  virtual bool isDone(Request request) = 0;
  /// Seconds since the communicator was made.
  virtual double now() const = 0;

  /// Records the work of the rank's device together with its transfers. Null
  /// where that is not possible.
  virtual Recorder *recorder() { return nullptr; }

  /// Sets the position that other ranks print after this rank's number:
  /// "stage 1, chunk 3, microbatch 2, RECV_F from rank 0". The text is copied.
  virtual void setPosition(const std::string &position) = 0;

  /// Ends the run on every rank: all that wait throw RunError with `message`.
  /// Only the first failure of a run counts. Callable from any thread.
  virtual void fail(const std::string &message) = 0;

  /// Starts a collective and waits for it.
  TransferTime run(Stream stream, const Collective &collective,
                   const RankGroup &group, const void *source,
                   void *destination) {
    return wait(start(stream, collective, group, source, destination));
  }
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_COMMUNICATOR_H

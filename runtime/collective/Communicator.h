// SPDX-License-Identifier: Apache-2.0
//
// What ranks say to each other: messages between two, collectives in groups.
// One interface; threads of one process (collective/local) and processes under
// MPI (collective/mpi) stand behind it.
#ifndef ROTA_RUNTIME_COLLECTIVE_COMMUNICATOR_H
#define ROTA_RUNTIME_COLLECTIVE_COMMUNICATOR_H

#include "runtime/program/Program.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rota {

/// Independent sequences of transfers. Transfers of one stream and one group
/// (or pair and direction) meet in the order in which each rank starts them;
/// nothing is ordered between streams, so that a gather that waits for a slow
/// rank holds up no message.
enum class Stream : int {
  Task,      // collectives inside tasks
  Weights,   // UNSHARD
  Gradients, // REDUCE_GRAD
  Step,      // what happens between two runs of the timelines
  Forward,   // SEND_F, RECV_F
  Backward,  // SEND_B, RECV_B
};
inline constexpr int kStreams = 6;

/// The ranks that take part in a collective, in its order, and where among them
/// this rank stands.
struct RankGroup {
  std::vector<int> ranks;
  int index = 0;
  // Ranks along each of the collective's axes; only Permute reads them.
  std::vector<int64_t> sizes;
};

/// The group of `rank` along `axes` of `mesh`, the first of them slowest.
RankGroup groupOf(const std::vector<MeshAxis> &mesh, int rank,
                  const std::vector<int> &axes);
/// The rank's coordinate on each axis, and back.
std::vector<int64_t> coordinatesOf(const std::vector<MeshAxis> &mesh, int rank);
int rankOf(const std::vector<MeshAxis> &mesh,
           const std::vector<int64_t> &coordinates);

/// Something that was started. 0 is always complete.
using Request = int64_t;

/// When a request moved bytes, as Communicator::now counts.
struct TransferTime {
  double begin = 0.0, end = 0.0;
};

/// One rank's end. Called from that rank's thread only. Sums are made in the
/// group's order, element by element, in f32 and rounded once to the type (i32
/// in i32), whatever the timing and the backend, so that bits depend on
/// neither. A maximum of which one term is not a number is none. Everything
/// that waits throws RunError, with the first failure of the run as its text,
/// once some rank has failed; then no memory is read or written any more.
class Communicator {
public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Starts a collective of `group`. Source and destination, as the kind says,
  /// stay as they are until it is complete; they are the same only for
  /// AllReduce. Transfers of one stream and one group also run in order: one
  /// may add to what the one before wrote. Where a part's memory is longer than
  /// the part, ReduceScatter without `accumulate` and Slice fill it with zeros.
  /// In a group of one it is a copy or an addition, beside the caller like the
  /// rest.
  virtual Request start(Stream stream, const Collective &collective,
                        const RankGroup &group, const void *source,
                        void *destination) = 0;

  /// Start one half of a message; neither blocks. The n-th send to a rank meets
  /// the n-th receive from it in the same stream, and both have the same size.
  virtual Request send(Stream stream, int peer, const void *source,
                       int64_t bytes) = 0;
  virtual Request receive(Stream stream, int peer, void *destination,
                          int64_t bytes) = 0;

  /// Starts a copy within this rank's memory. Copies run in any order.
  virtual Request copy(const void *source, void *destination,
                       int64_t bytes) = 0;

  /// Waits until it is complete: the destination holds the result and the
  /// source may change. Gives when it ran, and forgets the request: what was
  /// waited for before is complete and has an empty span.
  virtual TransferTime wait(Request request) = 0;
  /// True when `wait` would not wait.
  virtual bool isDone(Request request) = 0;
  /// Seconds since the communicator was made.
  virtual double now() const = 0;

  /// Says where the rank is, for messages that other ranks print behind its
  /// number: "stage 1, chunk 3, microbatch 2, RECV_F from rank 0". It is
  /// copied.
  virtual void setPosition(const std::string &position) = 0;

  /// Ends the run on every rank: whoever waits throws RunError with `message`.
  /// The first failure wins. Callable from any thread.
  virtual void fail(const std::string &message) = 0;

  /// start and wait.
  TransferTime run(Stream stream, const Collective &collective,
                   const RankGroup &group, const void *source,
                   void *destination) {
    return wait(start(stream, collective, group, source, destination));
  }
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_COMMUNICATOR_H

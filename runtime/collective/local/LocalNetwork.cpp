// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/local/LocalNetwork.h"
#include "runtime/Error.h"
#include "runtime/collective/NetworkEnd.h"
#include "runtime/collective/local/Rendezvous.h"
#include "runtime/threads/StartThread.h"
#include "runtime/threads/Turn.h"

#include <chrono>
#include <condition_variable>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace rota {

namespace {

/// A transfer of at most this many bytes takes less time than waking threads.
constexpr int64_t kSmallBytes = 1 << 16;
/// Such bytes where ranks outnumber the cores: a thread that wakes takes the
/// core of another rank, which runs again after about as long as 256 KB take.
constexpr int64_t kSmallBytesOfSharedCores = 1 << 18;

/// All rendezvous of one stream and group, or pair and direction.
struct RendezvousSequence : Sequence<Rendezvous> {
  std::vector<int64_t> finished; // by member
};

/// One member's share of a rendezvous at which all members have arrived.
struct Share {
  std::shared_ptr<Rendezvous> rendezvous;
  int index = 0;
  RendezvousSequence *sequence = nullptr; // null: a copy, which has no order
};

/// Priority of a share: higher where a rank's next action is likelier to wait.
int priority(const Share &share) {
  switch (share.rendezvous->stream) {
  case Stream::Task:
  case Stream::PairTask:
    return 0;
  case Stream::Forward:
  case Stream::Backward:
    return 1;
  case Stream::Step:
    return 2;
  case Stream::Weights:
  case Stream::Gradients:
    return 3;
  }
  return 3;
}

} // namespace

/// Matches the transfers that ranks start and hands out their pieces. One lock
/// guards everything but the tensors; threads copy and sum without it.
class LocalNetwork::Switch {
public:
  Switch(int count, int cores)
      : Switch(std::vector<Rank>(count),
               count > cores ? kSmallBytesOfSharedCores : kSmallBytes) {
    for (int rank = 0; rank < count; ++rank)
      ranks[rank].helper = startThread({"transfers of ranks", rank + 1, count},
                                       [this, rank] { help(rank); });
  }
  ~Switch();

  Request start(int rank, const Exchange &exchange, int index,
                const void *source, void *destination);
  Request copy(int rank, const void *source, void *destination, int64_t bytes) {
    return start(rank, {Stream::Weights, rank, rank, bytes}, 0, source,
                 destination);
  }
  TransferTime wait(int rank, Request request, Turn *turn = nullptr);
  bool isDone(int rank, Request request);
  void setPosition(int rank, const std::string &position);
  void fail(const std::string &message);
  double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         origin)
        .count();
  }
  int size() const { return static_cast<int>(ranks.size()); }

private:
  using Lock = std::unique_lock<std::mutex>;
  /// A thread in wait().
  struct Waiter {
    const Rendezvous &rendezvous;
    Turn *turn; // null: it needs none
    Semaphore wake = {};
    bool hasAsked = false; // for the turn, since the rendezvous is over
  };
  struct Rank {
    std::thread helper;
    std::condition_variable wakeHelper;
    std::vector<Waiter *> waiters;
    std::vector<Share> ready;                    // by priority, then by age
    std::unordered_map<Request, Share> requests; // not waited for
    Request lastRequest = 0;
    std::string position = "start";
  };
  Switch(std::vector<Rank> ranks, int64_t smallBytes)
      : ranks(std::move(ranks)), smallBytes(smallBytes) {}

  Share join(Lock &lock, int rank, std::unique_ptr<Rendezvous> rendezvous,
             int index);
  void open(Lock &lock, const Share &share);
  void takeAll(Lock &lock, const Share &share);
  bool takeOne(Lock &lock, int rank);
  bool takeForOthers(Lock &lock, const Share &own);
  void take(Lock &lock, const Share &share);
  static bool canTake(const Share &share);
  const Share *nextOf(int rank) const;
  void release();
  void complete(Rendezvous &rendezvous);
  static void wakeWaiters(const Rank &rank);
  void wake(int rank, Stream stream);
  void wakeForNext(int rank);
  void help(int rank);
  void fail(Lock &lock, const std::string &message);

  const std::chrono::steady_clock::time_point origin =
      std::chrono::steady_clock::now();
  std::mutex mutex;
  std::vector<Rank> ranks;
  const int64_t smallBytes; // of a transfer that one thread does
  std::map<SequenceKey, RendezvousSequence> sequences;
  int busy = 0; // threads that read or write tensors now
  std::condition_variable idle;
  bool failed = false, closing = false;
  std::string failure;
};

LocalNetwork::Switch::~Switch() {
  {
    Lock lock(mutex);
    closing = true;
    for (Rank &rank : ranks)
      rank.wakeHelper.notify_all();
  }
  for (Rank &rank : ranks)
    if (rank.helper.joinable()) // else the system has refused it
      rank.helper.join();
}

Request LocalNetwork::Switch::start(int rank, const Exchange &exchange,
                                    int index, const void *source,
                                    void *destination) {
  Lock lock(mutex);
  Rank &own = ranks[rank];
  Request request = ++own.lastRequest;
  Share share = join(lock, rank, std::make_unique<Rendezvous>(exchange), index);
  own.requests[request] = share;
  if (share.rendezvous->arrive(index, source, destination) && !failed)
    open(lock, share);
  return request;
}

/// Finds the rendezvous that this rank's next transfer of the sequence belongs
/// to.
Share LocalNetwork::Switch::join(Lock &lock, int rank,
                                 std::unique_ptr<Rendezvous> rendezvous,
                                 int index) {
  if (rendezvous->isMessage && rendezvous->ranks().size() == 1) // a copy
    return {std::move(rendezvous), index, nullptr};
  RendezvousSequence &sequence = sequences[keyOf(*rendezvous)];
  size_t members = rendezvous->ranks().size();
  sequence.finished.resize(members);
  std::shared_ptr<Rendezvous> &open = sequence.next(index, members);
  if (!open) {
    rendezvous->number = sequence.lastNumber();
    open = std::move(rendezvous);
  } else if (std::string wrong = open->disagreement(*rendezvous);
             !wrong.empty()) {
    fail(lock,
         fmt::format("rank {}: {}: {}", rank, ranks[rank].position, wrong));
  }
  return {open, index, &sequence};
}

/// Makes the shares ready: all members have arrived.
void LocalNetwork::Switch::open(Lock &lock, const Share &share) {
  Rendezvous &rendezvous = *share.rendezvous;
  bool isNext = true; // all earlier ones of the sequence are over
  if (RendezvousSequence *sequence = share.sequence) {
    sequence->removeFirst(); // members arrive in order
    for (size_t i = 0; i < rendezvous.members.size(); ++i)
      isNext &=
          rendezvous.isIdle(i) || sequence->finished[i] == rendezvous.number;
  }
  if (isNext && rendezvous.bytes() <= smallBytes)
    return takeAll(lock, share);
  rendezvous.isShared = true;
  for (size_t i = 0; i < rendezvous.members.size(); ++i) {
    if (rendezvous.isIdle(i))
      continue;
    Share ready = {share.rendezvous, int(i), share.sequence};
    std::vector<Share> &list = ranks[rendezvous.ranks()[i]].ready;
    auto place = std::find_if(list.begin(), list.end(), [&](const Share &s) {
      return priority(s) > priority(ready);
    });
    list.insert(place, ready);
    wake(rendezvous.ranks()[i], rendezvous.stream);
  }
}

/// Does all pieces of the rendezvous, for all members.
void LocalNetwork::Switch::takeAll(Lock &lock, const Share &share) {
  Rendezvous &rendezvous = *share.rendezvous;
  double begin = now();
  ++busy;
  lock.unlock();
  rendezvous.takeAll();
  lock.lock();
  release();
  for (size_t i = 0; i < rendezvous.members.size(); ++i) {
    rendezvous.members[i].span.begin = begin;
    if (share.sequence)
      ++share.sequence->finished[i];
  }
  complete(rendezvous);
  for (int rank : rendezvous.ranks())
    wakeForNext(rank);
}

/// The share of highest priority that has an unclaimed piece of the rank.
const Share *LocalNetwork::Switch::nextOf(int rank) const {
  if (failed)
    return nullptr;
  const std::vector<Share> &list = ranks[rank].ready;
  auto found = std::ranges::find_if(list, canTake);
  return found == list.end() ? nullptr : &*found;
}

/// Whether the share has an unclaimed piece, and all earlier ones of its
/// sequence are over for this member.
bool LocalNetwork::Switch::canTake(const Share &share) {
  const Rendezvous::Member &member = share.rendezvous->members[share.index];
  bool isNext = !share.sequence || share.sequence->finished[share.index] ==
                                       share.rendezvous->number;
  return isNext && member.claimed < member.pieces;
}

/// Does one claim of the rank's shares. False: there is none.
bool LocalNetwork::Switch::takeOne(Lock &lock, int rank) {
  const Share *next = nextOf(rank);
  if (next)
    take(lock, Share(*next)); // the list changes meanwhile
  return next != nullptr;
}

/// Does one claim of other members' shares of a rendezvous that the caller
/// waits for: their threads may sleep, and it takes as long to wake one as to
/// copy some hundred KB. False: there is none.
bool LocalNetwork::Switch::takeForOthers(Lock &lock, const Share &own) {
  if (!own.rendezvous->isShared)
    return false;
  size_t members = own.rendezvous->members.size();
  for (size_t step = 1; step < members; ++step) {
    Share other = own;
    other.index = static_cast<int>((own.index + step) % members);
    if (canTake(other)) {
      take(lock, other);
      wakeForNext(other.rendezvous->ranks()[other.index]);
      return true;
    }
  }
  return false;
}

/// Does one claim of the share.
void LocalNetwork::Switch::take(Lock &lock, const Share &share) {
  Rendezvous &rendezvous = *share.rendezvous;
  Rendezvous::Member &member = rendezvous.members[share.index];
  Rendezvous::Pieces pieces = *rendezvous.claim(share.index);
  if (member.span.begin == 0.0)
    member.span.begin = now();
  ++busy;
  lock.unlock();
  rendezvous.take(share.index, pieces);
  lock.lock();
  release();
  bool phaseEnded = rendezvous.finish(share.index, pieces);
  if (rendezvous.hasTaken(share.index)) {
    std::vector<Share> &list = ranks[rendezvous.ranks()[share.index]].ready;
    list.erase(std::find_if(list.begin(), list.end(), [&](const Share &s) {
      return s.rendezvous == share.rendezvous;
    }));
    if (share.sequence)
      ++share.sequence->finished[share.index];
  }
  if (rendezvous.isComplete())
    complete(rendezvous);
  else if (phaseEnded)
    for (int member : rendezvous.ranks())
      wake(member, rendezvous.stream);
}

/// Ends the use of tensors by this thread.
void LocalNetwork::Switch::release() {
  if (--busy == 0 && failed)
    idle.notify_all();
}

void LocalNetwork::Switch::complete(Rendezvous &rendezvous) {
  rendezvous.isOver = true;
  double end = now();
  for (size_t i = 0; i < rendezvous.members.size(); ++i) {
    rendezvous.members[i].span.end = end;
    for (Waiter *waiter : ranks[rendezvous.ranks()[i]].waiters)
      if (waiter->turn && &waiter->rendezvous == &rendezvous) {
        waiter->hasAsked = true;
        waiter->turn->ask(waiter->wake);
      } else {
        waiter->wake.give();
      }
  }
}

void LocalNetwork::Switch::wakeWaiters(const Rank &rank) {
  for (Waiter *waiter : rank.waiters)
    waiter->wake.give();
}

/// Wakes a thread for a new piece of the rank. The rank's own thread waits for
/// in-task transfers at once; the helper would only delay it.
void LocalNetwork::Switch::wake(int rank, Stream stream) {
  if (!ranks[rank].waiters.empty())
    wakeWaiters(ranks[rank]);
  else if (stream != Stream::Task && stream != Stream::PairTask)
    ranks[rank].wakeHelper.notify_one();
}

/// Another rank's thread has ended a share of this rank, whose threads may have
/// slept since the next share of the sequence could not begin.
void LocalNetwork::Switch::wakeForNext(int rank) {
  if (const Share *next = nextOf(rank))
    wake(rank, next->rendezvous->stream);
}

void LocalNetwork::Switch::help(int rank) {
  Lock lock(mutex);
  while (!closing)
    if (!takeOne(lock, rank))
      ranks[rank].wakeHelper.wait(lock);
}

TransferTime LocalNetwork::Switch::wait(int rank, Request request, Turn *turn) {
  Lock lock(mutex);
  Rank &own = ranks[rank];
  auto found = own.requests.find(request);
  if (found == own.requests.end())
    return {};
  Share share = found->second;
  Waiter self{*share.rendezvous, turn};
  own.waiters.push_back(&self);
  auto hasEnded = [&] {
    return share.rendezvous->isOver && (!self.hasAsked || turn->hasCome());
  };
  while (!failed && !hasEnded())
    if (!takeOne(lock, rank) && !takeForOthers(lock, share)) {
      lock.unlock();
      self.wake.take();
      lock.lock();
    }
  own.waiters.erase(std::ranges::find(own.waiters, &self));
  if (failed && self.hasAsked)
    turn->withdraw();
  if (!share.rendezvous->isOver) {
    idle.wait(lock, [&] { return busy == 0; });
    throw RunError(failure);
  }
  own.requests.erase(request);
  if (nextOf(rank))
    own.wakeHelper.notify_one();
  TransferTime span = share.rendezvous->members[share.index].span;
  if (span.begin == 0.0) // this member had no piece
    span.begin = span.end;
  return span;
}

bool LocalNetwork::Switch::isDone(int rank, Request request) {
  Lock lock(mutex);
  Rank &own = ranks[rank];
  auto found = own.requests.find(request);
  if (found == own.requests.end() || found->second.rendezvous->isOver)
    return true;
  if (nextOf(rank))
    own.wakeHelper.notify_one();
  return failed;
}

void LocalNetwork::Switch::setPosition(int rank, const std::string &position) {
  Lock lock(mutex);
  ranks[rank].position = position;
}

void LocalNetwork::Switch::fail(const std::string &message) {
  Lock lock(mutex);
  fail(lock, message);
}

void LocalNetwork::Switch::fail(Lock &lock, const std::string &message) {
  if (!failed) {
    failed = true;
    failure = message;
    for (const Rank &rank : ranks)
      wakeWaiters(rank);
  }
  idle.wait(lock, [&] { return busy == 0; });
}

class LocalNetwork::End : public NetworkEnd<Switch> {
public:
  using NetworkEnd::NetworkEnd;
  TransferTime waitForTurn(Request request, Turn &turn) override {
    return network.wait(rank(), request, &turn);
  }
};

LocalNetwork::LocalNetwork(int ranks, int cores)
    : network(std::make_unique<Switch>(ranks, cores)) {
  for (int rank = 0; rank < ranks; ++rank)
    ends.push_back(std::make_unique<End>(*network, rank));
}

LocalNetwork::~LocalNetwork() = default;

Communicator &LocalNetwork::at(int rank) { return *ends[rank]; }

} // namespace rota

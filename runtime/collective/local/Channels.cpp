// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/local/Channels.h"

#include <algorithm>
#include <cstring>

namespace rota {

Channels::Channels(const std::vector<int> &actions)
    : ranks(static_cast<int>(actions.size())) {
  for (int i = 0; i < 2 * ranks * ranks; ++i)
    channels.push_back(std::make_unique<Channel>());
  for (int count : actions) {
    completions.push_back(std::make_unique<Completions>());
    completions.back()->done.resize(count);
  }
}

void Channels::reset() {
  for (auto &c : completions)
    std::fill(c->done.begin(), c->done.end(), 0);
}

Channels::Channel &Channels::channel(int source, int destination,
                                     bool forward) {
  return *channels[(source * ranks + destination) * 2 + forward];
}

void Channels::send(const Half &half, int destination, bool forward) {
  Channel &c = channel(half.rank, destination, forward);
  Half other;
  {
    std::lock_guard lock(c.mutex);
    if (c.receives.empty()) {
      c.sends.push_back(half);
      return;
    }
    other = c.receives.front();
    c.receives.pop_front();
  }
  transfer(half, other);
}

void Channels::receive(const Half &half, int source, bool forward) {
  Channel &c = channel(source, half.rank, forward);
  Half other;
  {
    std::lock_guard lock(c.mutex);
    if (c.sends.empty()) {
      c.receives.push_back(half);
      return;
    }
    other = c.sends.front();
    c.sends.pop_front();
  }
  transfer(other, half);
}

void Channels::transfer(const Half &source, const Half &destination) {
  std::memcpy(destination.place, source.place,
              static_cast<size_t>(source.bytes));
  complete(source.rank, source.action);
  complete(destination.rank, destination.action);
}

void Channels::complete(int rank, int action) {
  Completions &c = *completions[rank];
  std::lock_guard lock(c.mutex);
  c.done[action] = 1;
  c.changed.notify_all();
}

bool Channels::wait(int rank, int action) {
  Completions &c = *completions[rank];
  std::unique_lock lock(c.mutex);
  c.changed.wait(lock, [&] { return c.done[action] || c.stopped; });
  return c.done[action];
}

void Channels::stop() {
  for (auto &c : completions) {
    std::lock_guard lock(c->mutex);
    c->stopped = true;
    c->changed.notify_all();
  }
}

} // namespace rota

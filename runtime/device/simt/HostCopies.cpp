// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/HostCopies.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace rota::simt {

/// In destinations until their copies: NaN in every float type.
static constexpr char kPoison = '\xFF';

/// Host memory that a copy under way reads or writes.
bool HostCopies::isUsed(const char *begin, size_t bytes) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range &range) {
    return begin < range.begin + range.bytes && range.begin < begin + bytes;
  });
}

std::shared_ptr<const HostCopies::Pending>
HostCopies::ask(const char *from, char *to, size_t bytes) {
  if (!from && !to)
    return nullptr;
  return std::make_shared<Pending>(*this, from, to, bytes);
}

/// A copy that was asked for before may need what the destination holds now:
/// such a destination is left as it is.
HostCopies::Pending::Pending(HostCopies &owner, const char *from, char *to,
                             size_t bytes)
    : owner(owner), from(from), to(to), bytes(bytes),
      asked(owner.emulator.order().lastFinished()) {
  std::lock_guard lock(owner.mutex);
  if (from)
    source.assign(from, from + bytes);
  if (to && !owner.isUsed(to, bytes)) {
    destination.assign(bytes, kPoison);
    std::memset(to, kPoison, bytes);
  }
  for (const char *place : {from, static_cast<const char *>(to)})
    if (place)
      owner.ranges.push_back({place, bytes});
}

HostCopies::Pending::~Pending() {
  std::lock_guard lock(owner.mutex);
  for (const char *place : {from, static_cast<const char *>(to)}) {
    auto range = std::find_if(
        owner.ranges.begin(), owner.ranges.end(), [&](const Range &other) {
          return other.begin == place && other.bytes == bytes;
        });
    if (range != owner.ranges.end())
      owner.ranges.erase(range);
  }
}

/// Bytes that an operation has written since the request are no change of the
/// host.
std::string HostCopies::Pending::findChange(const char *place,
                                            const std::vector<char> &expected,
                                            const char *what) const {
  for (size_t i = 0; i < expected.size(); ++i)
    if (place[i] != expected[i] && owner.emulator.lastWrite(place + i) <= asked)
      return fmt::format("expected its {} as it was when the copy was asked "
                         "for, got a change by the host at byte {} of {}",
                         what, i, bytes);
  return "";
}

std::string HostCopies::Pending::check() const {
  std::string wrong = findChange(from, source, "source");
  return wrong.empty() ? findChange(to, destination, "destination") : wrong;
}

} // namespace rota::simt

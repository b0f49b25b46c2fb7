// SPDX-License-Identifier: Apache-2.0
//
// Host memory while copies from it and to it are under way: the host must not
// change a source before its copy, nor use a destination before it has waited.
// The emulator runs no code of the host, so it looks at the bytes: those of a
// source are compared, and a destination holds 0xFF until its copy.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_HOSTCOPIES_H
#define ROTA_RUNTIME_DEVICE_SIMT_HOSTCOPIES_H

#include "runtime/device/simt/Simt.h"

#include <list>

namespace rota::simt {

class HostCopies {
public:
  explicit HostCopies(Emulator &emulator) : emulator(emulator) {}

  /// One copy between the request and its end.
  class Pending {
  public:
    Pending(HostCopies &owner, const char *from, char *to, size_t bytes);
    ~Pending();
    /// Just before the copy. Returns what the host did too early, or nothing.
    std::string check() const;

  private:
    std::string findChange(const char *place, const std::vector<char> &expected,
                           const char *what) const;

    HostCopies &owner;
    const char *from;
    char *to; // null: not host memory; so is `from`
    size_t bytes;
    OperationId asked;                     // the last operation that had ended
    std::vector<char> source, destination; // bytes at the request
  };

  /// A copy was asked for. `from` or `to` is null where it is no host memory.
  std::shared_ptr<const Pending> ask(const char *from, char *to, size_t bytes);

private:
  bool isUsed(const char *begin, size_t bytes);

  struct Range {
    const char *begin;
    size_t bytes;
  };
  Emulator &emulator;
  std::mutex mutex;
  std::list<Range> ranges; // ranges of copies that are under way
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_HOSTCOPIES_H

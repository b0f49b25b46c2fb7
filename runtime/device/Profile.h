// SPDX-License-Identifier: Apache-2.0
//
// Counts and times of tasks, kernels and GEMMs, for `--profile`. Each rank has
// one profile, to which only that rank's thread writes. Without `--profile`
// there is no profile, and a timer costs one comparison.
#ifndef ROTA_RUNTIME_DEVICE_PROFILE_H
#define ROTA_RUNTIME_DEVICE_PROFILE_H

#include "runtime/device/Context.h"

#include <map>
#include <string>
#include <vector>

namespace rota {

struct Program;

class Profile {
public:
  struct Entry {
    int64_t calls = 0;
    double seconds = 0.0;
    double flops = 0.0; // 0 where unknown
    double bytes = 0.0; // read and written; 0 where unknown
    int64_t rows = 0;   // rows that kernels work on
  };
  using Table = std::map<std::string, Entry>;

  /// The device's work between two points of it.
  struct Span {
    Device::TimePoint begin, end;
  };
  void addTask(int task, Span span);
  void addKernel(RotaKernel kernel, int64_t rows, Span span);
  void addGemm(const RotaGemm &gemm, Span span);
  /// Adds the times of all spans so far, which the device then may forget.
  void settle(Device &device);
  /// Forgets what was added.
  void clear() { *this = {}; }

  /// The tables under the program's names; functions[i] is its kernel i.
  Table tasks(const Program &program) const;
  Table kernels(const Program &program, const RotaKernel *functions) const;
  const Table &gemms() const { return gemmTable; }

private:
  Entry &add(Entry &entry, Span span);

  std::vector<std::pair<Entry *, Span>> open; // whose times are not known
  std::map<int, Entry> taskTable;
  std::map<RotaKernel, Entry> kernelTable;
  Table gemmTable;
};

/// The device's work in a scope, for the context's profile if it has one.
class ProfiledScope {
public:
  explicit ProfiledScope(RotaContext *context)
      : profile(context ? context->profile : nullptr),
        device(profile ? context->device : nullptr),
        begin(profile ? device->mark() : 0) {}
  /// Calls add(profile, span) at its end.
  template <typename F> void end(F add) {
    if (profile)
      add(*profile, Profile::Span{begin, device->mark()});
  }

private:
  Profile *profile;
  Device *device;
  Device::TimePoint begin;
};

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_PROFILE_H

// SPDX-License-Identifier: Apache-2.0
//
// Counts and times of tasks, kernels and GEMMs, for `--profile`. Each rank has
// one profile, to which only that rank's thread writes. Without `--profile`
// there is no profile, and a timer costs one comparison.
#ifndef ROTA_RUNTIME_TRACE_PROFILE_H
#define ROTA_RUNTIME_TRACE_PROFILE_H

#include "runtime/device/Context.h"

#include <chrono>
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
    int64_t rows = 0;   // of kernels
  };
  using Table = std::map<std::string, Entry>;

  void addTask(int task, double seconds);
  void addKernel(RotaKernel kernel, int64_t rows, double seconds);
  void addGemm(const RotaGemm &gemm, double seconds);

  /// The tables under the program's names; functions[i] is its kernel i.
  Table tasks(const Program &program) const;
  Table kernels(const Program &program, const RotaKernel *functions) const;
  const Table &gemms() const { return gemmTable; }

private:
  std::map<int, Entry> taskTable;
  std::map<RotaKernel, Entry> kernelTable;
  Table gemmTable;
};

/// Adds the time of its scope as one call of a kernel.
class KernelTimer {
public:
  KernelTimer(RotaContext *context, RotaKernel kernel, int64_t rows)
      : profile(context ? context->profile : nullptr), kernel(kernel),
        rows(rows) {
    if (profile)
      start = std::chrono::steady_clock::now();
  }
  ~KernelTimer() {
    if (profile)
      profile->addKernel(kernel, rows,
                         std::chrono::duration<double>(
                             std::chrono::steady_clock::now() - start)
                             .count());
  }

private:
  Profile *profile;
  RotaKernel kernel;
  int64_t rows;
  std::chrono::steady_clock::time_point start;
};

/// Adds the time of its scope as one GEMM of this shape.
class GemmTimer {
public:
  GemmTimer(RotaContext *context, const RotaGemm &gemm)
      : profile(context ? context->profile : nullptr), gemm(gemm) {
    if (profile)
      start = std::chrono::steady_clock::now();
  }
  ~GemmTimer() {
    if (profile)
      profile->addGemm(gemm, std::chrono::duration<double>(
                                 std::chrono::steady_clock::now() - start)
                                 .count());
  }

private:
  Profile *profile;
  const RotaGemm &gemm;
  std::chrono::steady_clock::time_point start;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRACE_PROFILE_H

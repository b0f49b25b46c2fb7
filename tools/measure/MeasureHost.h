// SPDX-License-Identifier: Apache-2.0
//
// This host as a machine of the planner: its rates, measured with the code that
// trainers run.
#ifndef ROTA_TOOLS_MEASURE_MEASUREHOST_H
#define ROTA_TOOLS_MEASURE_MEASUREHOST_H

#include "ir/rota/cost/Machine.h"
#include "tools/bench/CompiledOp.h"
#include "tools/measure/Team.h"
#include "tools/measure/WorkMemory.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace rota {

struct HostRequest {
  double seconds = 0;  // that the measurement takes, about
  int cores = 1;       // that ranks share
  std::string version; // of rota, for the sources
  /// Called before each part, with the share of the time that has passed.
  std::function<void(const std::string &part, double share)> progress;
};

struct HostMeasurement {
  mlir::rota::Machine machine;
  double freeShare = 1; // of the cores' time, while it was measured
  /// The time of the quickest tenth as a share of the median time.
  double steadiness = 1;
};

/// Measures. Nothing, with the reason in `error`, where code cannot be compiled
/// or memory is short.
std::optional<HostMeasurement> measureHost(const HostRequest &request,
                                           std::string &error);

/// The date of a measurement: "2026-11-26".
std::string today();

/// Memory of a thread's products, kept from one to the next. Operands keep
/// their values; results are added to.
struct ProductMemory {
  std::optional<WorkMemory> operands, results;

  /// Provides both.
  void provide(int64_t operandBytes, int64_t resultBytes) {
    rota::provide(operands, operandBytes);
    rota::provide(results, resultBytes);
  }
};

/// What the rounds of a measurement share. Memory is kept: to map it anew takes
/// some virtual machines as long as the measurement.
struct HostRounds {
  explicit HostRounds(int cores)
      : cores(cores), team(cores), products(cores), paces(cores),
        kernels(cores) {}

  int cores;
  Cores team; // for work that is divided among all cores
  MedianTimes times;
  std::vector<ProductMemory> products, paces;                    // by thread
  std::vector<std::optional<WorkMemory>> kernels;                // by thread
  std::map<std::string, std::unique_ptr<bench::CompiledOp>> ops; // by source
};

/// The work to whose pace others are measured: a small product.
MakeWork makePace(HostRounds &host);

/// The parts of a round, each of about `seconds`. They set the machine's
/// numbers from the medians of all rounds so far.
void measureProducts(mlir::rota::Machine &machine, HostRounds &work,
                     double seconds);
/// After measureProducts, whose rates it needs.
void measureExperts(mlir::rota::Machine &machine, HostRounds &host,
                    double seconds);
void measureMemory(mlir::rota::Machine &machine, HostRounds &work,
                   double seconds);
/// False where a kernel cannot be compiled; the reason is printed.
bool measureKernels(mlir::rota::Machine &machine, HostRounds &work,
                    double seconds);
void measureMessages(mlir::rota::Machine &machine, HostRounds &work,
                     double seconds);

} // namespace rota

#endif // ROTA_TOOLS_MEASURE_MEASUREHOST_H

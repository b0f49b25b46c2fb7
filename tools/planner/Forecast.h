// SPDX-License-Identifier: Apache-2.0
//
// A plan on its machine in numbers: the time of a step, the speed, the memory,
// and what a whole training run takes.
#ifndef ROTA_TOOLS_PLANNER_FORECAST_H
#define ROTA_TOOLS_PLANNER_FORECAST_H

#include "lowering/report/AxisTransfers.h"
#include "lowering/report/StepTime.h"
#include "tools/compiler/Compile.h"

namespace rota {

/// A step of a plan, as the machine of the plan would run it.
struct Forecast {
  std::string machine;
  int64_t devices = 1; // ranks, or fewer cores of the host that they share
  StepTime time;
  double stepSeconds = 0;
  double tokens = 0; // of a step
  /// Operations a second of all devices at their peak, for the type of the
  /// model's products.
  double peak = 0;
  /// Operations of the model for a token, forward and backward, without what is
  /// computed again: of the pairs of positions that attention sees, and of all.
  double flopsPerToken = 0, fullFlopsPerToken = 0;
  double bubble = 0; // share of the timeline in which ranks have no work
  std::vector<AxisTransfers> transfers; // the most exposed first
  int64_t bytes = 0;                    // of the rank that takes most

  double tokensPerSecond() const { return tokens / stepSeconds; }
  double tokensPerSecondAndDevice() const {
    return tokensPerSecond() / static_cast<double>(devices);
  }
  /// Model FLOPs utilization (Chowdhery et al. 2022, arXiv 2204.02311, appendix
  /// B): operations that the model needs by those that the devices could do.
  double mfu() const { return flopsPerToken * tokensPerSecond() / peak; }
  double fullMfu() const {
    return fullFlopsPerToken * tokensPerSecond() / peak;
  }
};

/// `hasBarrier`: steps end with one (hasStepBarrier).
Forecast forecast(const Plan &plan, bool hasBarrier);

/// A whole run that is asked about; 0: not asked.
struct CampaignRequest {
  double tokens = 0;                // that are trained on
  double price = 0;                 // of a device for an hour
  double hoursBetweenFailures = 0;  // mean of one device
  double storageBytesPerSecond = 0; // that checkpoints are written with, in all
};

/// What the run takes, with what failures and checkpoints cost.
struct Campaign {
  double seconds = 0, deviceHours = 0, cost = 0; // 0 without tokens
  double checkpointSeconds = 0; // in which a checkpoint is written
  double interval = 0;          // seconds between checkpoints
  double goodput = 1;           // share of the time that trains
};

/// Nothing without tokens and without a time between failures.
///
/// The interval and the goodput are those of Daly 2006 ("A higher order
/// estimate of the optimum checkpoint interval for restart dumps", equations 37
/// and 20; the first order is Young 1974), where a restart takes as long as a
/// checkpoint and training waits for both.
std::optional<Campaign> campaign(const Forecast &step, double stateBytes,
                                 const CampaignRequest &request);

/// Bytes of a checkpoint's tensors.
double stateBytes(const Program &program);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_FORECAST_H

// SPDX-License-Identifier: Apache-2.0
//
// torchtitan by its TOML configuration, spelled as in
// torchtitan/config/job_config.py. Later versions are configured in Python.
#ifndef ROTA_TOOLS_PLANNER_ENGINES_TORCHTITAN_H
#define ROTA_TOOLS_PLANNER_ENGINES_TORCHTITAN_H

#include "tools/planner/engines/EngineRun.h"
#include "tools/planner/engines/Rows.h"

#include <span>
#include <string_view>

namespace rota::engines::torchtitan {

/// The settings that say something about a plan. One that is not given has no
/// value.
struct Settings {
  using Count = std::optional<int64_t>;
  using Real = std::optional<double>;
  using Switch = std::optional<bool>;
  using Text = std::optional<std::string>;

  Text modelName, flavor;
  Text optimizer, rateForm;
  Real rate, beta1, beta2, epsilon, weightDecay, rateShare, decayShare;
  Count warmup;
  Count localBatch, globalBatch, sequenceLength, steps, seed;
  Real clip;
  Text dtype, computeType, reduceType;
  Count replicas, shards, tensor, pipeline, context, expert, expertTensor;
  Text reshard, schedule, scheduleFile, rotation, balancer;
  Count layersPerChunk, firstLess, lastLess, microbatchSize;
  Switch overlapsTensor, offloadsWeights;
  Text recomputed, selection;
};

using SettingRow = Row<Settings>;
/// The table of these settings. Their groups are the tables of the file.
std::span<const SettingRow> table();

/// Whether torchtitan has a setting of that dotted name.
bool isKnown(std::string_view name);
std::string nearestSetting(const std::string &name);

/// The list of the modules of each chunk, which stands beside the table.
inline constexpr const char *kModules = "module_fqns_per_model_part";

/// A model that torchtitan has under a name and a flavor.
struct Flavor {
  const char *name, *flavor;
  EngineModel model;
  bool isPipelined; // torchtitan divides it into stages
};
std::span<const Flavor> flavors();

/// A schedule's names: PyTorch's and Rota's. A file says the order of those
/// that are not the same in both.
struct ScheduleName {
  const char *theirs, *ours;
  bool isSame, hasSeveralChunks;
  bool isV = false; // chunks are placed in a V
};
std::span<const ScheduleName> scheduleNames();

std::optional<EngineExport> exportSettings(const EngineRun &run,
                                           std::string &error);
std::optional<EngineImport> importSettings(const ImportRequest &request,
                                           std::string &error);

} // namespace rota::engines::torchtitan

#endif // ROTA_TOOLS_PLANNER_ENGINES_TORCHTITAN_H

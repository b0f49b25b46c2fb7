// SPDX-License-Identifier: Apache-2.0
//
// A run as what a program on torch.distributed needs: the mesh by the arguments
// of init_device_mesh, and the schedule as the file that
// torch.distributed.pipelining reads (schedules.py, _PipelineScheduleRuntime).
#include "tools/planner/engines/Export.h"

#include "runtime/program/JsonText.h"
#include "tools/planner/LooseJson.h"

namespace rota::engines {

using json::Json;

/// Row-major over the ranks, as Rota numbers them.
static Json meshJson(const EngineRun &run) {
  Json shape = Json::array(), names = Json::array();
  for (auto [name, size] : {std::pair("data", run.data),
                            {"stage", run.stage},
                            {"fsdp", run.fsdp},
                            {"expert", run.expert},
                            {"context", run.context},
                            {"sequence", run.sequence},
                            {"tensor", run.tensor}})
    if (size > 1) {
      shape.push_back(size);
      names.push_back(name);
    }
  if (shape.empty()) {
    shape.push_back(1);
    names.push_back("stage");
  }
  return {{"mesh_shape", shape}, {"mesh_dim_names", names}};
}

/// The chunks of each rank of the pipeline are its stages there.
static Json pipelineJson(const EngineRun &run) {
  Json ranks = Json::array();
  for (int64_t rank = 0; rank < run.stage; ++rank) {
    Json chunks = Json::array();
    for (int64_t row = 0; row < run.repeats; ++row)
      chunks.push_back(row * run.stage +
                       (run.isV && row % 2 == 1 ? run.stage - 1 - rank : rank));
    ranks.push_back(chunks);
  }
  return {{"schedule_class", "_PipelineScheduleRuntime"},
          {"schedule_csv", "schedule.csv"},
          {"format", "compute_only"},
          {"n_microbatches", run.microbatches},
          {"microbatch_size", run.microbatchSize()},
          {"num_stages", run.chunks()},
          {"stages_of_rank", ranks},
          {"layers_of_stage", run.layers}};
}

std::optional<EngineExport> exportTorch(const EngineRun &run,
                                        std::string &error) {
  if (run.unpipelined > 0) {
    error = kCannotRun + "expected all layers in the pipeline, got " +
            std::to_string(run.unpipelined) + " outside of it";
    return std::nullopt;
  }
  EngineExport result;
  Json json = {{"engine", versionOf(Engine::Torch)},
               {"mesh", meshJson(run)},
               {"gradient_accumulation_steps",
                run.accumulate * (run.stage > 1 ? 1 : run.microbatches)}};
  if (run.stage > 1)
    json["pipeline"] = pipelineJson(run);
  result.files = {{"torch.json", jsonText(json, 2) + "\n"}};
  if (run.stage > 1)
    result.files.push_back({"schedule.csv", run.timeline});
  result.missing.push_back(
      {"model, remat, types, exchanges, optimizer",
       "they are code of a program there, not a configuration"});
  return result;
}

} // namespace rota::engines

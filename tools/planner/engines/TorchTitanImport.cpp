// SPDX-License-Identifier: Apache-2.0
//
// A configuration of torchtitan as a run of Rota.
#include "tools/planner/engines/TorchTitan.h"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>

namespace rota::engines::torchtitan {

namespace {

std::string two(int64_t a, int64_t b) {
  return std::to_string(a) + " and " + std::to_string(b);
}

/// Reads a file's values into settings.
class FileReader {
public:
  FileReader(const std::string &source, Settings &settings,
             EngineImport &import)
      : source(source), settings(settings), import(import) {}

  /// An empty string, or the first mistake with its place.
  std::string read(const std::string &text) {
    toml::parse_result parsed = toml::parse(text);
    if (!parsed)
      return at(parsed.error().source(),
                std::string(parsed.error().description()));
    readTable(parsed.table(), "");
    return error;
  }

  std::vector<int64_t> layers; // layers of each chunk; empty: not said

private:
  std::string at(const toml::source_region &place, const std::string &message) {
    return source + ":" + std::to_string(place.begin.line) + ":" +
           std::to_string(place.begin.column) + ": " + message;
  }
  void fail(const toml::node &node, const std::string &message) {
    if (error.empty())
      error = at(node.source(), message);
  }

  void readTable(const toml::table &table, const std::string &prefix) {
    for (auto &&[key, node] : table) {
      std::string name = prefix + std::string(key.str());
      if (const toml::table *inner = node.as_table())
        readTable(*inner, name + ".");
      else
        readValue(node, name);
    }
  }

  void readValue(const toml::node &node, const std::string &name) {
    auto row = std::ranges::find_if(table(), [&](const SettingRow &row) {
      return std::string(row.group) + "." + row.name == name;
    });
    if (name == std::string("parallelism.") + kModules)
      return readModules(node);
    if (const toml::array *converters = node.as_array();
        name == "model.converters" && converters && !converters->empty())
      import.remarks.push_back(
          {name, "weights and products are planned as without them"});
    if (row == table().end()) {
      if (!isKnown(name))
        return fail(node,
                    "unknown setting '" + name + "'" + nearestSetting(name));
      import.ignored.push_back(name);
      return;
    }
    std::string wrong = assign(*row, node);
    if (!wrong.empty())
      fail(node, "'" + name + "': " + wrong);
  }

  std::string assign(const SettingRow &row, const toml::node &node) {
    if (auto text = node.as_string())
      return row.isText() ? row.assign(settings, text->get())
                          : "expected no text, got '" + text->get() + "'";
    if (row.isText())
      return "expected a text";
    if (auto flag = node.as_boolean())
      return row.isSwitch()
                 ? row.assign(settings, flag->get() ? "true" : "false")
                 : "expected a number";
    if (auto number = node.as_integer())
      return row.assign(settings, std::to_string(number->get()));
    if (auto number = node.as_floating_point())
      return row.assign(settings, numberText(number->get()));
    return "expected one value";
  }

  /// Layers are in the order of their numbers, between the embedding and the
  /// loss.
  void readModules(const toml::node &node) {
    const toml::array *chunks = node.as_array();
    int64_t next = 0;
    for (size_t i = 0; chunks && i < chunks->size(); ++i) {
      const toml::array *names = (*chunks)[i].as_array();
      if (!names)
        return fail(node, "expected a list of names for each chunk");
      layers.push_back(0);
      for (const toml::node &each : *names) {
        std::string name = each.value_or(std::string());
        if (!name.starts_with("layers."))
          continue;
        if (name != "layers." + std::to_string(next++))
          return fail(each, "expected layers in the order of their numbers, "
                            "got '" +
                                name + "'");
        ++layers.back();
      }
    }
    if (layers.empty())
      fail(node, "expected a list of chunks");
  }

  const std::string &source;
  Settings &settings;
  EngineImport &import;
  std::string error;
};

/// Makes a run of settings, with torchtitan's values for those not given.
class RunOfSettings {
public:
  RunOfSettings(const Settings &settings, std::vector<int64_t> layers,
                const ImportRequest &request, EngineImport &import,
                std::string &error)
      : settings(settings), given(std::move(layers)), request(request),
        import(import), error(error) {}

  bool read() {
    if (!readModel() || !readRanks() || !readPipeline() || !readBatch() ||
        !readRecomputation())
      return false;
    readTypes();
    readOptimizer();
    return true;
  }

  EngineRun run;
  std::optional<EngineModel> model;

private:
  bool fail(std::string message) {
    error = request.source + ": " + message;
    return false;
  }
  void remark(std::string subject, std::string reason) {
    import.remarks.push_back({std::move(subject), std::move(reason)});
  }

  bool readModel();
  bool readRanks();
  bool readExchanges();
  bool readPipeline();
  std::string pathOf(const std::string &name) const;
  bool readSchedule(bool &hasSeveral);
  bool splitLayers(int64_t chunks);
  bool readBatch();
  bool readRecomputation();
  void readTypes();
  void readOptimizer();

  const Settings &settings;
  std::vector<int64_t> given; // layers of each chunk; empty: not said
  const ImportRequest &request;
  EngineImport &import;
  std::string &error;
};

bool RunOfSettings::readModel() {
  if (request.hasModel)
    return true;
  std::string name = settings.modelName.value_or("llama3");
  std::string flavor = settings.flavor.value_or("debugmodel");
  for (const char *attention :
       {"_flex", "_varlen", "_flex_attn", "_varlen_attn"}) // the same sizes
    if (flavor.ends_with(attention))
      flavor.resize(flavor.size() - std::string_view(attention).size());
  std::string known;
  for (const Flavor &row : flavors()) {
    if (name == row.name && flavor == row.flavor)
      model = row.model;
    known +=
        (known.empty() ? "" : ", ") + std::string(row.name) + " " + row.flavor;
  }
  import.modelName = name + "-" + flavor;
  return model ||
         fail("'model': expected one of " + known +
              ", or a 'model' beside the file, got " + name + " " + flavor);
}

bool RunOfSettings::readRanks() {
  run.data = settings.replicas.value_or(1);
  run.stage = settings.pipeline.value_or(1);
  run.sequence = settings.tensor.value_or(1);
  run.context = settings.context.value_or(1);
  run.expert = settings.expert.value_or(1);
  int64_t shards = settings.shards.value_or(-1), others = 1;
  // A search has devices of its own: where the batch is given, the run may have
  // any.
  if (shards < 0 && request.isSearched && request.devices > 0 &&
      settings.globalBatch.value_or(-1) > 0)
    shards = std::max<int64_t>(run.expert, 1);
  for (int64_t size : {run.data, run.stage, run.sequence, run.context})
    if ((others *= std::min<int64_t>(size, 1 << 25)) > 1 << 24)
      return fail("expected at most 16777216 ranks");
  if (shards == 0)
    return fail("'data_parallel_shard_degree': expected -1 or at least 1, "
                "got 0");
  if (shards < 0 && request.devices == 0)
    return fail("expected 'devices' beside the file: "
                "'data_parallel_shard_degree' is what is left of them");
  if (shards < 0 && request.devices % others != 0)
    return fail("expected devices that are a multiple of the other ranks, "
                "got " +
                two(request.devices, others));
  if (shards < 0)
    shards = request.devices / others;
  else if (request.devices > 0 && !request.isSearched &&
           shards * others != request.devices)
    return fail("expected the devices to be the product of the ranks, got " +
                two(request.devices, shards * others));
  if (shards % run.expert != 0)
    return fail("'expert_parallel_degree': expected a divisor of the shard "
                "ranks, got " +
                two(run.expert, shards) +
                "; Rota's experts are not divided over other axes");
  if (run.expert > 1 && settings.expertTensor.value_or(1) != run.sequence)
    return fail("'expert_tensor_parallel_degree': expected that of "
                "'tensor_parallel_degree', got " +
                two(settings.expertTensor.value_or(1), run.sequence));
  run.fsdp = shards / run.expert;
  return readExchanges();
}

bool RunOfSettings::readExchanges() {
  std::string rotation = settings.rotation.value_or("allgather");
  run.contextExchange = rotation == "allgather" ? "gather" : "balanced-ring";
  run.tensorExchange =
      settings.overlapsTensor.value_or(false) ? "auto" : "gather";
  std::string reshard = settings.reshard.value_or("default");
  if (reshard != "default" && reshard != "always" && reshard != "never")
    return fail("'fsdp_reshard_after_forward': expected default, always or "
                "never, got '" +
                reshard + "'");
  bool keeps = reshard == "never" || (reshard == "default" && run.stage > 1);
  run.weightGather = keeps ? "once" : "per-layer";
  if (run.expert > 1)
    remark("expert_parallel_degree", kExpertRoom);
  if (run.expert > 1)
    remark("expert_parallel_degree",
           "weights beside the experts are divided over the other shard ranks "
           "alone");
  if (run.context > 1)
    remark("context_parallel_degree",
           "weights are not divided over these ranks");
  if (settings.offloadsWeights.value_or(false))
    remark("enable_cpu_offload", "weights stay on the device");
  return true;
}

/// A file that the configuration names: as the engine finds it, from the folder
/// where it runs, or else beside the configuration.
std::string RunOfSettings::pathOf(const std::string &name) const {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path beside = fs::path(request.source).parent_path() / name;
  return !fs::exists(name, ignored) && fs::exists(beside, ignored)
             ? beside.string()
             : name;
}

/// The schedule by name or file, and whether a rank has several chunks.
bool RunOfSettings::readSchedule(bool &hasSeveral) {
  std::string wanted = settings.schedule.value_or("1F1B");
  auto isWanted = [&](std::string_view name) {
    return std::ranges::equal(name, wanted,
                              [](unsigned char a, unsigned char b) {
                                return std::tolower(a) == std::tolower(b);
                              });
  };
  hasSeveral = isWanted("PipelineScheduleMulti");
  bool isKnown = hasSeveral || isWanted("PipelineScheduleSingle");
  std::string names;
  for (const ScheduleName &row : scheduleNames()) {
    names += (names.empty() ? "" : ", ") + std::string(row.theirs);
    if (!isWanted(row.theirs))
      continue;
    run.schedule = row.ours;
    hasSeveral = row.hasSeveralChunks;
    isKnown = true;
  }
  if (!settings.scheduleFile.value_or("").empty())
    run.schedule = pathOf(*settings.scheduleFile);
  if (!isKnown || run.schedule.empty())
    return fail("'pipeline_parallel_schedule': expected one of " + names +
                ", or a file beside it, got '" + wanted + "'");
  return true;
}

bool RunOfSettings::readPipeline() {
  if (run.stage == 1)
    return true;
  bool hasSeveral = false;
  if (!readSchedule(hasSeveral))
    return false;
  int64_t chunks = int64_t(given.size());
  if (chunks == 0 && settings.layersPerChunk) {
    if (!model)
      return fail("'pipeline_parallel_layers_per_stage': expected "
                  "'module_fqns_per_model_part' beside a model of one's own");
    int64_t parts = model->layers + settings.firstLess.value_or(1) +
                    settings.lastLess.value_or(1);
    chunks = (parts + *settings.layersPerChunk - 1) / *settings.layersPerChunk;
  } else if (chunks == 0) {
    chunks = run.stage * (hasSeveral ? 2 : 1);
  }
  if (chunks % run.stage != 0)
    return fail("expected chunks that are a multiple of the pipeline's ranks, "
                "got " +
                two(chunks, run.stage));
  run.repeats = chunks / run.stage;
  if (hasSeveral != (run.repeats > 1))
    return fail("'pipeline_parallel_schedule': expected " +
                std::string(hasSeveral ? "several chunks" : "one chunk") +
                " on each rank, got " + std::to_string(run.repeats));
  run.layers = given;
  return !given.empty() || !model || splitLayers(chunks);
}

/// Divides the layers as torchtitan does where no modules are given: the
/// embedding and the head count as layers, and the first chunks get the rest.
bool RunOfSettings::splitLayers(int64_t chunks) {
  int64_t first = settings.firstLess.value_or(1);
  int64_t last = settings.lastLess.value_or(1);
  int64_t parts = model->layers + first + last;
  int64_t each = parts / chunks;
  if (each == 0 || first > each || last > each)
    return fail("expected at least a layer for each chunk, and as many as the "
                "ends have less, got " +
                two(parts, chunks) + " parts and chunks");
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    run.layers.push_back(each + (chunk < parts % chunks));
  run.layers.front() -= first;
  run.layers.back() -= last;
  return true;
}

bool RunOfSettings::readBatch() {
  int64_t local = settings.localBatch.value_or(8);
  int64_t all = local * run.batchRanks();
  int64_t batch = settings.globalBatch.value_or(-1);
  run.batch = batch < 0 ? all : batch;
  run.length = settings.sequenceLength.value_or(2048);
  if (run.batch == 0 || run.batch % all != 0)
    return fail("'global_batch_size': expected a multiple of "
                "'local_batch_size' * data-parallel ranks, got " +
                two(run.batch, all));
  run.accumulate = run.batch / all;
  int64_t part = settings.microbatchSize.value_or(1);
  if (run.stage > 1 && local % part != 0)
    return fail("'local_batch_size': expected a multiple of "
                "'pipeline_parallel_microbatch_size', got " +
                two(local, part));
  if (run.stage > 1)
    run.microbatches = local / part;
  run.steps = settings.steps.value_or(10000);
  return true;
}

bool RunOfSettings::readRecomputation() {
  std::string mode = settings.recomputed.value_or("selective");
  std::string selection = settings.selection.value_or("2");
  if (mode == "none" || mode == "full") {
    run.remat = mode;
    return true;
  }
  if (mode != "selective")
    return fail("'activation_checkpoint.mode': expected none, selective or "
                "full, got '" +
                mode + "'");
  run.remat = selection == "op" ? "minimal_with_context" : "full";
  if (selection != "1")
    remark("activation_checkpoint selective " + selection,
           "'remat' " + run.remat + " is taken, which keeps " +
               (selection == "op" ? "every product" : "no layer"));
  return true;
}

void RunOfSettings::readTypes() {
  run.isBf16 = settings.computeType.value_or("bfloat16") == "bfloat16";
  if (settings.dtype.value_or("float32") != "float32")
    remark("training.dtype " + *settings.dtype,
           "master weights, gradients and states are float32");
}

void RunOfSettings::readOptimizer() {
  double rate = settings.rate.value_or(8e-4);
  if (std::string name = settings.optimizer.value_or("AdamW"); name != "AdamW")
    remark("optimizer " + name, "adamw is taken");
  run.numbers = {{"learning-rate", rate},
                 {"min-learning-rate",
                  rate * std::clamp(settings.rateShare.value_or(0), 0.0, 1.0)},
                 {"beta1", settings.beta1.value_or(0.9)},
                 {"beta2", settings.beta2.value_or(0.95)},
                 {"epsilon", settings.epsilon.value_or(1e-8)},
                 {"weight-decay", settings.weightDecay.value_or(0.1)},
                 {"gradient-clip", settings.clip.value_or(1)},
                 {"warmup-steps", double(settings.warmup.value_or(200))}};
  run.rateSchedule =
      settings.rateForm.value_or("linear") == "cosine" ? "cosine" : "linear";
  if (settings.decayShare) {
    run.rateSchedule = "wsd";
    run.numbers["decay-share"] = std::min(1.0, *settings.decayShare);
  }
}

} // namespace

std::optional<EngineImport> importSettings(const ImportRequest &request,
                                           std::string &error) {
  Settings settings;
  EngineImport import;
  FileReader file(request.source, settings, import);
  error = file.read(request.text);
  if (!error.empty())
    return std::nullopt;
  RunOfSettings reader(settings, file.layers, request, import, error);
  if (!reader.read())
    return std::nullopt;
  import.options = optionsOf(reader.run);
  if (reader.model)
    import.config = writeModel(*reader.model);
  return import;
}

} // namespace rota::engines::torchtitan

// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/options/AdapterOptions.h"

#include "models/Config.h"
#include "runtime/files/Nesting.h"
#include "runtime/program/AdapterNames.h"
#include "runtime/program/JsonText.h"
#include "runtime/text/Text.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

using nlohmann::json;

namespace rota {
namespace {

/// Largest numbers of the flags, and of a folder.
constexpr double kMostRank = mlir::rota::Config::maxSize, kMostAlpha = 1e9;

/// Keys of adapter_config.json that change what an adapter computes or which
/// tensors it has, with the values that change nothing.
struct NeutralValue {
  const char *key;
  json value;
};

const std::vector<NeutralValue> &neutralValues() {
  static const std::vector<NeutralValue> values = {
      {"use_rslora", false},
      {"use_dora", false},
      {"fan_in_fan_out", false},
      {"lora_bias", false},
      {"bias", "none"},
      {"rank_pattern", json::object()},
      {"alpha_pattern", json::object()}};
  return values;
}

/// Keys that must be absent, null or empty.
constexpr const char *kUnread[] = {"alora_invocation_tokens",
                                   "arrow_config",
                                   "exclude_modules",
                                   "kasa_config",
                                   "layer_replication",
                                   "layers_to_transform",
                                   "megatron_config",
                                   "modules_to_save",
                                   "monteclora_config",
                                   "target_parameters",
                                   "trainable_token_indices",
                                   "use_bdlora",
                                   "velora_config"};

/// Reads adapter_config.json; a mistake in it, or nothing.
class AdapterFile {
public:
  std::string read(const std::string &folder,
                   mlir::rota::AdapterOptions &adapters) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, kAdapterConfig);
    auto buffer = llvm::MemoryBuffer::getFile(path);
    if (!buffer)
      return fmt::format("cannot read '{}': {}", path.str().str(),
                         buffer.getError().message());
    std::string text = (*buffer)->getBuffer().str();
    std::string mistake = nestingMistake(text);
    if (mistake.empty()) {
      config = json::parse(text, nullptr, /*allow_exceptions=*/false);
      mistake = config.is_object() ? check() : "expected a JSON object";
    }
    if (!mistake.empty())
      return fmt::format("'{}': {}", path.str().str(), mistake);
    adapters.rank = config["r"].get<int64_t>();
    adapters.alpha = config["lora_alpha"].get<double>();
    adapters.targets = config["target_modules"].get<std::vector<std::string>>();
    std::ranges::sort(adapters.targets);
    return "";
  }

private:
  std::string expected(const char *key, const std::string &what) const {
    return fmt::format("'{}': expected {}, got {}", key, what,
                       config.contains(key) ? jsonText(config[key])
                                            : "no such key");
  }

  std::string check() const {
    if (config.value("peft_type", json()) != "LORA")
      return expected("peft_type", "\"LORA\"");
    auto isNumber = [&](const char *key, double most) {
      return config.contains(key) && config[key].is_number() &&
             config[key].get<double>() > 0 && config[key].get<double>() <= most;
    };
    if (!isNumber("r", kMostRank) || !config["r"].is_number_integer())
      return expected("r", "a rank from 1 to " + numberText(kMostRank));
    if (!isNumber("lora_alpha", kMostAlpha))
      return expected("lora_alpha",
                      "a number above 0 and at most " + numberText(kMostAlpha));
    const json targets = config.value("target_modules", json());
    if (!targets.is_array() || targets.empty() ||
        !std::ranges::all_of(targets,
                             [](const json &name) { return name.is_string(); }))
      return expected("target_modules", "a list of names of layers");
    for (const auto &[key, value] : neutralValues())
      if (config.contains(key) && !config[key].is_null() &&
          config[key] != value)
        return expected(key, jsonText(value));
    for (const char *key : kUnread)
      if (config.contains(key) && !config[key].is_null() &&
          !config[key].empty())
        return expected(key, "null");
    return "";
  }

  json config;
};

} // namespace

/// The mistake in an option that was given beside a folder; empty: none.
static OptionMistake compare(const RunOptions &options, const char *name,
                             const std::string &given,
                             const std::string &ofFolder) {
  if (!options.given.contains(name) || given == ofFolder)
    return {};
  return {name, fmt::format("expected {} as in 'adapter' {}, got {}", ofFolder,
                            options.adapter, given)};
}

static std::string listOf(std::vector<std::string> names) {
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ","));
}

static OptionMistake readFolder(RunOptions &options) {
  mlir::rota::AdapterOptions &given = options.compiler.build.adapters, found;
  if (std::string error = AdapterFile().read(options.adapter, found);
      !error.empty())
    return {"adapter", error};
  for (const OptionMistake &mistake :
       {compare(options, kLoraRank, std::to_string(given.rank),
                std::to_string(found.rank)),
        compare(options, kLoraAlpha, numberText(given.alpha),
                numberText(found.alpha)),
        compare(options, kLoraTargets, listOf(given.targets),
                listOf(found.targets))})
    if (!mistake.option.empty())
      return mistake;
  given = found;
  return {};
}

std::vector<Option> adapterRows(RunOptions &options, unsigned commands) {
  const char *group = "Model";
  mlir::rota::AdapterOptions &adapters = options.compiler.build.adapters;
  return {
      {kLoraRank, group, "R",
       "Trains low-rank adapters of this rank and freezes all else: y = W x "
       "+ alpha / R * B (A x) (0: none; that of 'adapter')",
       commands, &adapters.rank, 0, kMostRank},
      {kLoraAlpha, group, "X",
       "The alpha of adapters (twice the rank; that of 'adapter')", commands,
       &adapters.alpha, 0, kMostAlpha},
      {kLoraTargets, group, "NAME,...",
       "Names of linear layers that get adapters, or ends of them in whole "
       "words (q_proj, v_proj; those of 'adapter')",
       commands, &adapters.targets}};
}

OptionMistake completeAdapter(RunOptions &options) {
  mlir::rota::AdapterOptions &adapters = options.compiler.build.adapters;
  if (!options.adapter.empty())
    return readFolder(options);
  for (const char *name : {kLoraAlpha, kLoraTargets})
    if (adapters.rank == 0 && options.given.contains(name))
      return {name, std::string("expected '") + kLoraRank + "' beside it"};
  if (adapters.rank == 0)
    return {};
  if (!options.given.contains(kLoraAlpha))
    adapters.alpha = 2.0 * static_cast<double>(adapters.rank);
  if (adapters.alpha <= 0)
    return {kLoraAlpha,
            "expected a number above 0, got " + numberText(adapters.alpha)};
  if (adapters.targets.empty())
    adapters.targets = {"q_proj", "v_proj"};
  return {};
}

} // namespace rota

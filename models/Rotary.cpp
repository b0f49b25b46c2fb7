// SPDX-License-Identifier: Apache-2.0
//
// Reads rotary settings and computes frequencies. transformers computes them in
// f32, with an error of a few 1e-8. They are f64 here: the rounding of f32
// differs between libraries, and an angle multiplies it by the position.
#include "models/Rotary.h"

#include "mlir/Support/LLVM.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mlir::rota;

struct mlir::rota::RotaryScaling {
  StringLiteral name; // the value of `rope_type`
  /// Reads the settings of this kind from the object at `key`.
  void (*read)(Config &config, StringRef key, Rotary &rotary);
  /// The frequency of pair `pair` of heads of `headSize`, stretched.
  double (*stretch)(double frequency, int64_t pair, int64_t headSize,
                    const Rotary &rotary);
  bool isPartial = false; // reads `partial_rotary_factor`
};

static constexpr StringLiteral contextKey = "max_position_embeddings";

static std::string inside(StringRef key, StringRef name) {
  return (key + "." + name).str();
}

static void readFactor(Config &config, StringRef key, Rotary &rotary) {
  rotary.factor =
      config.real(inside(key, "factor"), {}, "a number of at least 1",
                  [](double value) { return value >= 1; });
}

static double divide(double frequency, int64_t, int64_t, const Rotary &rotary) {
  return frequency / rotary.factor;
}

/// The context that the model was made for, where the settings at `key` do not
/// say another one.
static double readContext(Config &config, StringRef key) {
  std::string original = inside(key, "original_max_position_embeddings");
  bool isOther = !config.find(original) && config.find(contextKey);
  return config.size(isOther ? StringRef(contextKey) : StringRef(original));
}

static void readDynamic(Config &config, StringRef key, Rotary &rotary) {
  readFactor(config, key, rotary);
  rotary.originalContext = config.size(contextKey);
}

/// Sequences that are longer than the original context have a theta that is
/// growth^(headSize / (headSize - 2)) times as large: the frequency of the
/// first pair stays, that of the last one is divided by the growth
/// (`_compute_dynamic_ntk_parameters` of transformers).
static double stretchDynamic(double frequency, int64_t pair, int64_t headSize,
                             const Rotary &rotary) {
  if (pair == 0)
    return frequency;
  double longer = std::max(1.0, double(rotary.length) / rotary.originalContext);
  double growth = rotary.factor * longer - (rotary.factor - 1);
  return frequency * std::pow(growth, -double(2 * pair) / double(headSize - 2));
}

static void readLlama3(Config &config, StringRef key, Rotary &rotary) {
  readFactor(config, key, rotary);
  std::string low = inside(key, "low_freq_factor");
  std::string high = inside(key, "high_freq_factor");
  rotary.lowFrequencyFactor = config.positive(low, {});
  rotary.highFrequencyFactor = config.positive(high, {});
  rotary.originalContext = readContext(config, key);
  if (!config.failed() &&
      rotary.highFrequencyFactor <= rotary.lowFrequencyFactor)
    config.error(high) << "expected more than '" << low << "', got "
                       << shortText(rotary.highFrequencyFactor) << " and "
                       << shortText(rotary.lowFrequencyFactor);
}

/// Frequencies that turn often over the original context are kept, those that
/// turn seldom are divided by the factor, and those between are interpolated
/// (Llama 3.1's `use_scaled_rope`).
static double stretchLlama3(double frequency, int64_t, int64_t,
                            const Rotary &rotary) {
  double turns = rotary.originalContext * frequency / (2 * std::numbers::pi);
  if (turns > rotary.highFrequencyFactor)
    return frequency;
  if (turns < rotary.lowFrequencyFactor)
    return frequency / rotary.factor;
  double kept = (turns - rotary.lowFrequencyFactor) /
                (rotary.highFrequencyFactor - rotary.lowFrequencyFactor);
  return (1 - kept) * frequency / rotary.factor + kept * frequency;
}

/// YaRN's scale of cosines and sines for a context `factor` as long (Peng et
/// al. 2023, section 3.4); `weight` is 1 there.
static double yarnScale(double factor, double weight) {
  return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

static void readYarn(Config &config, StringRef key, Rotary &rotary) {
  readFactor(config, key, rotary);
  auto positive = [&](StringRef name, double fallback) {
    return config.positive(inside(key, name), fallback);
  };
  auto weight = [&](StringRef name) {
    return config.real(inside(key, name), 0.0, "a number of at least 0",
                       [](double value) { return value >= 0; });
  };
  rotary.originalContext = readContext(config, key);
  rotary.fastTurns = positive("beta_fast", rotary.fastTurns);
  rotary.slowTurns = positive("beta_slow", rotary.slowTurns);
  rotary.truncates = config.flag(inside(key, "truncate"), true);
  double part = weight("mscale"), whole = weight("mscale_all_dim");
  double scale = part != 0 && whole != 0 ? yarnScale(rotary.factor, part) /
                                               yarnScale(rotary.factor, whole)
                                         : yarnScale(rotary.factor, 1);
  rotary.scale = positive("attention_factor", scale);
  rotary.temperature = whole != 0 ? yarnScale(rotary.factor, whole) : 1.0;
  if (!config.failed() && rotary.fastTurns < rotary.slowTurns)
    config.error(inside(key, "beta_fast"))
        << "expected at least '" << inside(key, "beta_slow") << "', got "
        << shortText(rotary.fastTurns) << " and "
        << shortText(rotary.slowTurns);
}

/// Frequencies between those that turn `fastTurns` and `slowTurns` times over
/// the original context are interpolated by the number of their pair (YaRN,
/// Peng et al. 2023, section 3.2).
static double stretchYarn(double frequency, int64_t pair, int64_t headSize,
                          const Rotary &rotary) {
  auto pairOf = [&](double turns) {
    double length = rotary.originalContext / (turns * 2 * std::numbers::pi);
    return headSize * std::log(length) / (2 * std::log(rotary.theta));
  };
  double low = pairOf(rotary.fastTurns), high = pairOf(rotary.slowTurns);
  if (rotary.truncates) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, double(headSize - 1));
  if (low == high)
    high += 0.001; // as transformers does
  double divided = std::clamp((pair - low) / (high - low), 0.0, 1.0);
  return divided * frequency / rotary.factor + (1 - divided) * frequency;
}

static void readProportional(Config &config, StringRef key, Rotary &rotary) {
  if (config.find(inside(key, "factor")))
    readFactor(config, key, rotary);
  rotary.share = config.share(inside(key, "partial_rotary_factor"), 1.0);
}

/// The first pairs turn with the frequencies of the whole head, divided by the
/// factor; the others do not turn.
static double stretchProportional(double frequency, int64_t pair,
                                  int64_t headSize, const Rotary &rotary) {
  int64_t turning = std::floor(rotary.share * double(headSize) / 2);
  return pair < turning ? frequency / rotary.factor : 0;
}

static constexpr RotaryScaling yarn = {"yarn", readYarn, stretchYarn};

static constexpr RotaryScaling scalings[] = {
    {"dynamic", readDynamic, stretchDynamic},
    {"linear", readFactor, divide},
    {"llama3", readLlama3, stretchLlama3},
    {"proportional", readProportional, stretchProportional,
     /*isPartial=*/true},
    yarn,
};

/// The scaling that `rope_type` names in the object at `key`, or its older
/// spelling `type`; null for "default", for no name, and after an error.
static const RotaryScaling *findScaling(Config &config, StringRef key) {
  std::string newer = inside(key, "rope_type"), older = inside(key, "type");
  StringRef given = config.spelling(newer, older);
  std::string name = config.text(given, "");
  if (name.empty() || name == "default")
    return nullptr;
  for (const RotaryScaling &scaling : scalings)
    if (scaling.name == name)
      return &scaling;
  config.ignore(key); // since other kinds have other keys
  auto error = config.error(given);
  error << "expected \"default\"";
  for (const RotaryScaling &scaling : scalings)
    error << (&scaling == std::end(scalings) - 1 ? " or \"" : ", \"")
          << scaling.name << "\"";
  error << ", got \"" << name << "\"; other kinds are not supported";
  return nullptr;
}

/// Reads the object at `key`, of either spelling.
static void readScaling(Config &config, StringRef key, Rotary &rotary) {
  rotary.scaling = findScaling(config, key);
  // With other kinds transformers' models of our families ignore the key or
  // fail.
  std::string part = inside(key, "partial_rotary_factor");
  const nlohmann::json *value = config.find(part);
  bool isPartial = rotary.scaling && rotary.scaling->isPartial;
  if (value && *value != 1.0 && !isPartial)
    config.expected(part, "1, or 'rope_type' \"proportional\"");
  if (rotary.scaling)
    rotary.scaling->read(config, key, rotary);
}

/// Reports values of the older spelling that the newer has otherwise.
static void compareSpellings(Config &config, const RotaryKeys &keys) {
  const nlohmann::json *older =
      keys.scaling.empty() ? nullptr : config.find(keys.scaling);
  if (!older || !older->is_object())
    return;
  config.ignore(keys.scaling); // what is equal is known as the newer's
  for (const auto &[name, value] : older->items()) {
    const nlohmann::json *newer = config.find(inside(keys.parameters, name));
    if (name != "type" && (!newer || *newer != value))
      config.error(inside(keys.scaling, name))
          << "expected the value of '" << inside(keys.parameters, name) << "', "
          << (newer ? shortText(*newer) : "nothing") << ", got "
          << shortText(value);
  }
}

Rotary Rotary::read(Config &config, int64_t length, const RotaryKeys &keys) {
  Rotary rotary;
  rotary.length = length;
  for (StringRef key : {keys.parameters, keys.scaling})
    if (const nlohmann::json *value = key.empty() ? nullptr : config.find(key);
        value && !value->is_object())
      config.expected(key, "an object or null");
  bool isNewer = config.find(keys.parameters);
  StringRef key = isNewer ? keys.parameters : keys.scaling;
  double outer = config.positive(keys.theta, keys.fallback);
  rotary.theta =
      key.empty() ? outer : config.positive(inside(key, "rope_theta"), outer);
  if (isNewer) {
    if (config.find(keys.theta) && rotary.theta != outer)
      config.error(keys.theta)
          << "expected the value of '" << inside(key, "rope_theta") << "', "
          << shortText(rotary.theta) << ", got " << shortText(outer);
    compareSpellings(config, keys);
  }
  if (!key.empty())
    readScaling(config, key, rotary);
  return rotary;
}

void Rotary::setYarn(double factor, double originalContext, bool truncates) {
  scaling = &yarn;
  this->factor = factor;
  this->originalContext = originalContext;
  this->truncates = truncates;
  scale = yarnScale(factor, 1);
}

SmallVector<double> Rotary::frequencies(int64_t headSize) const {
  SmallVector<double> result;
  for (int64_t i = 0; i < headSize / 2; ++i) {
    double frequency = 1.0 / std::pow(theta, double(2 * i) / headSize);
    result.push_back(scaling ? scaling->stretch(frequency, i, headSize, *this)
                             : frequency);
  }
  return result;
}

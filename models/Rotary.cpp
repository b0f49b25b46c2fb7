// SPDX-License-Identifier: Apache-2.0
//
// Reads rotary settings and computes frequencies. transformers computes them in
// f32, with an error of a few 1e-8. They are f64 here: the rounding of f32
// differs between libraries, and an angle multiplies it by the position.
#include "models/Rotary.h"

#include "mlir/Support/LLVM.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mlir::rota;

struct mlir::rota::RotaryScaling {
  StringLiteral name; // the value of `rope_type`
  /// Reads the settings of this kind from the object at `key`.
  void (*read)(Config &config, StringRef key, Rotary &rotary);
  double (*stretch)(double frequency, const Rotary &rotary);
};

static std::string inside(StringRef key, StringRef name) {
  return (key + "." + name).str();
}

static bool isPositive(double value) { return value > 0; }

static void readFactor(Config &config, StringRef key, Rotary &rotary) {
  rotary.factor =
      config.real(inside(key, "factor"), {}, "a number of at least 1",
                  [](double value) { return value >= 1; });
}

static double divide(double frequency, const Rotary &rotary) {
  return frequency / rotary.factor;
}

static void readLlama3(Config &config, StringRef key, Rotary &rotary) {
  readFactor(config, key, rotary);
  std::string low = inside(key, "low_freq_factor");
  std::string high = inside(key, "high_freq_factor");
  rotary.lowFrequencyFactor =
      config.real(low, {}, "a number above 0", isPositive);
  rotary.highFrequencyFactor =
      config.real(high, {}, "a number above 0", isPositive);
  rotary.originalContext =
      config.size(inside(key, "original_max_position_embeddings"));
  if (!config.failed() &&
      rotary.highFrequencyFactor <= rotary.lowFrequencyFactor)
    config.error(high) << "expected more than '" << low << "', got "
                       << rotary.highFrequencyFactor << " and "
                       << rotary.lowFrequencyFactor;
}

/// Frequencies that turn often over the original context are kept, those that
/// turn seldom are divided by the factor, and those between are interpolated
/// (Llama 3.1's `use_scaled_rope`).
static double stretchLlama3(double frequency, const Rotary &rotary) {
  double turns = rotary.originalContext * frequency / (2 * std::numbers::pi);
  if (turns > rotary.highFrequencyFactor)
    return frequency;
  if (turns < rotary.lowFrequencyFactor)
    return frequency / rotary.factor;
  double kept = (turns - rotary.lowFrequencyFactor) /
                (rotary.highFrequencyFactor - rotary.lowFrequencyFactor);
  return (1 - kept) * frequency / rotary.factor + kept * frequency;
}

static constexpr RotaryScaling scalings[] = {
    {"linear", readFactor, divide},
    {"llama3", readLlama3, stretchLlama3},
};

/// The scaling that `rope_type` names in the object at `key`, or its older
/// spelling `type`; null for "default", for no name, and after an error.
static const RotaryScaling *findScaling(Config &config, StringRef key) {
  std::string newer = inside(key, "rope_type"), older = inside(key, "type");
  std::string olderName = config.text(older, "");
  std::string name = config.text(newer, olderName);
  if (!olderName.empty() && name != olderName)
    config.error(newer) << "expected the value of '" << older << "', \""
                        << olderName << "\", got \"" << name << "\"";
  if (name.empty() || name == "default")
    return nullptr;
  for (const RotaryScaling &scaling : scalings)
    if (scaling.name == name)
      return &scaling;
  auto error = config.error(config.find(newer) ? newer : older);
  error << "expected \"default\"";
  for (const RotaryScaling &scaling : scalings)
    error << (&scaling == std::end(scalings) - 1 ? " or \"" : ", \"")
          << scaling.name << "\"";
  error << ", got \"" << name << "\"; other kinds are not supported";
  return nullptr;
}

/// Reads the object at `key`: `rope_scaling` or `rope_parameters`.
static void readScaling(Config &config, StringRef key, Rotary &rotary) {
  // transformers 5 may hold one object per kind of layer.
  for (StringRef kind : {"full_attention", "sliding_attention"})
    if (config.find(inside(key, kind)))
      config.error(inside(key, kind))
          << "rotary parameters per kind of layer are not supported";
  for (StringRef name :
       {"attention_factor", "mrope_section", "long_factor", "short_factor"})
    if (config.find(inside(key, name)))
      config.expected(inside(key, name), "no such key; it changes the "
                                         "computation and is not supported");
  std::string part = inside(key, "partial_rotary_factor");
  if (const nlohmann::json *value = config.find(part); value && *value != 1.0)
    config.expected(part, "1");
  rotary.scaling = findScaling(config, key);
  if (rotary.scaling)
    rotary.scaling->read(config, key, rotary);
}

/// Reports values of `rope_scaling` that `rope_parameters` has otherwise.
static void compareSpellings(Config &config) {
  const nlohmann::json *older = config.find("rope_scaling");
  if (!older)
    return;
  for (const auto &[name, value] : older->items()) {
    const nlohmann::json *newer = config.find(inside("rope_parameters", name));
    if (name != "type" && (!newer || *newer != value))
      config.error(inside("rope_scaling", name))
          << "expected the value of 'rope_parameters." << name << "', "
          << (newer ? shortText(*newer) : "nothing") << ", got "
          << shortText(value);
  }
}

Rotary Rotary::read(Config &config) {
  Rotary rotary;
  StringRef rule = "a number above 0";
  for (StringRef key : {"rope_parameters", "rope_scaling"})
    if (const nlohmann::json *value = config.find(key);
        value && !value->is_object()) {
      config.expected(key, "an object or null");
      return rotary;
    }
  bool isNewer = config.find("rope_parameters");
  StringRef key = isNewer ? "rope_parameters" : "rope_scaling";
  double outer = config.real("rope_theta", rotary.theta, rule, isPositive);
  rotary.theta =
      config.real(inside(key, "rope_theta"), outer, rule, isPositive);
  if (isNewer) {
    if (config.find("rope_theta") && rotary.theta != outer)
      config.error("rope_theta")
          << "expected the value of 'rope_parameters.rope_theta', "
          << rotary.theta << ", got " << outer;
    compareSpellings(config);
  }
  readScaling(config, key, rotary);
  return rotary;
}

SmallVector<double> Rotary::frequencies(int64_t headSize) const {
  SmallVector<double> result;
  for (int64_t i = 0; i < headSize / 2; ++i) {
    double frequency = 1.0 / std::pow(theta, double(2 * i) / headSize);
    result.push_back(scaling ? scaling->stretch(frequency, *this) : frequency);
  }
  return result;
}

// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/AdapterContents.h"
#include "runtime/Error.h"
#include "runtime/program/AdapterNames.h"
#include "runtime/program/JsonText.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <memory>
#include <sstream>

using nlohmann::ordered_json;

namespace rota {

template <typename Number>
static Number numberOf(const Manifest &manifest, const char *key) {
  Number number = 0;
  auto found = manifest.identity.find(key);
  if (found != manifest.identity.end())
    std::from_chars(found->second.data(),
                    found->second.data() + found->second.size(), number);
  return number;
}

std::optional<AdapterFacts> adaptersOf(const Manifest &manifest) {
  AdapterFacts facts;
  facts.rank = numberOf<int64_t>(manifest, kLoraRank);
  facts.alpha = numberOf<double>(manifest, kLoraAlpha);
  if (auto targets = manifest.identity.find(kLoraTargets);
      targets != manifest.identity.end()) {
    std::stringstream list(targets->second);
    for (std::string target; std::getline(list, target, ',');)
      facts.targets.push_back(target);
  }
  if (facts.rank < 1)
    return std::nullopt;
  return facts;
}

static bool isOfAdapter(const WrittenTensor &tensor) {
  return tensor.names.size() == 1 && isAdapter(tensor.names.front());
}

void keepAdapters(HubContents &contents, const AdapterFacts &facts) {
  std::erase_if(contents.tensors, [](const WrittenTensor &tensor) {
    return !isOfAdapter(tensor);
  });
  for (WrittenTensor &tensor : contents.tensors)
    tensor.names.front() = kAdapterPrefix + tensor.names.front();
  contents.config = {
      {"peft_type", "LORA"},
      {"task_type", "CAUSAL_LM"},
      {"base_model_name_or_path",
       facts.base.empty() ? ordered_json() : ordered_json(facts.base)},
      {"r", facts.rank},
      {"lora_alpha", facts.alpha},
      {"lora_dropout", 0.0},
      {"target_modules", facts.targets},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"init_lora_weights", true},
      {"inference_mode", true},
      {"use_rslora", false},
      {"use_dora", false}};
  contents.configText = jsonText(contents.config, 2) + "\n";
  contents.configFile = kAdapterConfig;
  contents.stem = kAdapterFile;
  contents.stem.resize(contents.stem.rfind('.'));
  contents.keepsTypes = true;
}

void addAdapters(HubContents &contents, const HubTensors &tensors) {
  for (const auto &[name, tensor] : tensors.tensors()) {
    if (!name.starts_with(kAdapterPrefix) || !isAdapter(name) ||
        tensor.shape.size() != 2 || !tensor.isFloat())
      throw InputError(fmt::format(
          "'{}': tensor '{}': expected matrices {}*{} and {} alone",
          tensors.file(), name, kAdapterPrefix, kAdapterA, kAdapterB));
    WrittenTensor added;
    added.names = {name.substr(std::string_view(kAdapterPrefix).size())};
    added.shape = tensor.shape;
    added.type = "F32";
    added.bytes = 4 * tensor.elements();
    added.read = [&tensor](float *whole) {
      readFloats(tensor, 0, tensor.elements(), whole);
    };
    contents.tensors.push_back(std::move(added));
  }
}

static std::unique_ptr<float[]> valuesOf(const WrittenTensor &tensor) {
  auto values = std::make_unique_for_overwrite<float[]>(
      static_cast<size_t>(tensor.shape[0] * tensor.shape[1]));
  tensor.read(values.get());
  return values;
}

/// Adds `scale` * b a to `weight` [rows, columns], with sums in f64.
static void addProduct(float *weight, const WrittenTensor &a,
                       const WrittenTensor &b, double scale) {
  int64_t rows = b.shape[0], rank = a.shape[0], columns = a.shape[1];
  auto inner = valuesOf(a), outer = valuesOf(b);
  std::vector<double> sums(static_cast<size_t>(columns));
  for (int64_t row = 0; row < rows; ++row) {
    std::ranges::fill(sums, 0.0);
    for (int64_t k = 0; k < rank; ++k) {
      double factor = outer[static_cast<size_t>(row * rank + k)];
      const float *of = inner.get() + k * columns;
      for (int64_t column = 0; column < columns; ++column)
        sums[static_cast<size_t>(column)] += factor * of[column];
    }
    float *to = weight + row * columns;
    for (int64_t column = 0; column < columns; ++column)
      to[column] = static_cast<float>(
          to[column] + scale * sums[static_cast<size_t>(column)]);
  }
}

static WrittenTensor *find(HubContents &contents, const std::string &name) {
  auto found =
      std::ranges::find_if(contents.tensors, [&](const WrittenTensor &tensor) {
        return tensor.names.size() == 1 && tensor.names.front() == name;
      });
  return found == contents.tensors.end() ? nullptr : &*found;
}

/// Makes the weight to which `a` belongs a sum.
static void mergeOne(HubContents &contents, const WrittenTensor &a,
                     double scale) {
  std::string name = adaptedWeight(a.names.front());
  const WrittenTensor *b = find(contents, adapterName(name, kAdapterB));
  WrittenTensor *weight = find(contents, name);
  if (!b)
    throw InputError(fmt::format("adapter of '{}': expected '{}' beside '{}'",
                                 name, adapterName(name, kAdapterB),
                                 a.names.front()));
  std::vector<int64_t> shape = {b->shape[0], a.shape[1]};
  if (!weight || weight->shape != shape || a.shape[0] != b->shape[1])
    throw InputError(fmt::format(
        "adapter of '{}': expected a weight to which the product of {} and {} "
        "adds, got {}",
        name, shapeText(b->shape), shapeText(a.shape),
        weight ? shapeText(weight->shape) : "none of that name"));
  if (weight->type != "F32" && weight->type != "BF16")
    weight->type = contents.type;
  weight->bytes = typeBytes(weight->type) * shape[0] * shape[1];
  weight->raw = nullptr;
  weight->read = [read = weight->read, a, b = *b, scale](float *whole) {
    read(whole);
    addProduct(whole, a, b, scale);
  };
}

void mergeAdapters(HubContents &contents, double scale) {
  for (const WrittenTensor &tensor : contents.tensors)
    if (isOfAdapter(tensor) && tensor.names.front().ends_with(kAdapterA))
      mergeOne(contents, tensor, scale);
  std::erase_if(contents.tensors, isOfAdapter);
}

} // namespace rota

// SPDX-License-Identifier: Apache-2.0
//
// Weights of a hub: an input is an index and a safetensors file. Either they
// are refused by an InputError, or every element of every tensor is read.
#include "runtime/Error.h"
#include "runtime/checkpoint/Weights.h"
#include "test/fuzz/FuzzFiles.h"

#include <functional>
#include <vector>

using namespace rota;
using namespace rota::test;

static Program twoParameters() {
  Program program;
  Parameter weight, norm;
  weight.name = "layers.{layer}.w";
  weight.shape = {2, 3};
  weight.layers = {0, 1};
  norm.name = "norm";
  norm.shape = {3};
  program.parameters = {weight, norm};
  return program;
}

static void readFile(const std::string &path) {
  HubTensors hub(path);
  for (const auto &[name, tensor] : hub.tensors())
    if (tensor.isFloat() && tensor.elements() <= 1 << 20) {
      std::vector<float> values(static_cast<size_t>(tensor.elements()));
      readFloats(tensor, 0, tensor.elements(), values.data());
    }
}

static void readWeights(const std::string &path) {
  static const Program program = twoParameters();
  Weights weights(path, program);
  for (const Parameter &parameter : program.parameters)
    for (int64_t layer : parameter.layers.empty() ? std::vector<int64_t>{-1}
                                                  : parameter.layers) {
      std::vector<float> values(static_cast<size_t>(elementCount(parameter)));
      weights.find(parameter, layer)
          ->readFloats(0, elementCount(parameter), values.data());
    }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzInput input(data, size);
  const TemporaryFolder &folder = fuzzFolder();
  std::string index =
      folder.write("model.safetensors.index.json", std::string(input.file()));
  std::string file = folder.write("a", std::string(input.last()));
  for (auto &read : {std::function<void()>([&] { readFile(file); }),
                     std::function<void()>([&] { readWeights(index); })})
    try {
      read();
    } catch (const InputError &) {
    }
  return 0;
}

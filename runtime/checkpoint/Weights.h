// SPDX-License-Identifier: Apache-2.0
//
// A model's weights under the names of model hubs: read from one safetensors
// file, from the index of a sharded one, or from a folder; written as one file.
#ifndef ROTA_RUNTIME_CHECKPOINT_WEIGHTS_H
#define ROTA_RUNTIME_CHECKPOINT_WEIGHTS_H

#include "runtime/checkpoint/Safetensors.h"
#include "runtime/program/Program.h"

#include <memory>

namespace rota {

/// The parameter's name with "{layer}" replaced; `layer` -1 leaves it.
std::string tensorName(const Parameter &parameter, int64_t layer);

class Weights {
public:
  /// `path`: a .safetensors file, a model.safetensors.index.json, or a folder
  /// that holds one of them. Checks that every tensor of the program is there
  /// with its shape and a float type. Throws InputError.
  Weights(const std::string &path, const Program &program);

  const TensorView &find(const Parameter &parameter, int64_t layer) const;
  /// Names of tensors in the files that the program has no parameter for.
  const std::vector<std::string> &unused() const { return unusedNames; }

private:
  void open(const std::string &path);
  void openIndex(const std::string &path);
  void check(const std::string &path, const Program &program);

  std::vector<std::unique_ptr<SafetensorsFile>> files;
  std::map<std::string, TensorView> tensors;
  std::vector<std::string> unusedNames;
};

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_WEIGHTS_H

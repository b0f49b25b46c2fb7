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

/// One layer's parameter in files: tensors of one size, one after the other.
class StoredParameter {
public:
  explicit StoredParameter(std::vector<const TensorView *> parts)
      : parts(std::move(parts)) {}

  /// Elements [begin, end) of the parameter as f32.
  void readFloats(int64_t begin, int64_t end, float *out) const;

private:
  std::vector<const TensorView *> parts;
};

class Weights {
public:
  /// `path`: a .safetensors file, a model.safetensors.index.json, or a folder
  /// that holds one of them. Names in it may lack the first word. Checks that
  /// every tensor of the program is there with its shape and a float type.
  /// Throws InputError.
  Weights(const std::string &path, const Program &program);

  StoredParameter find(const Parameter &parameter, int64_t layer) const;
  /// For people: "75 tensors of 'FOLDER'".
  std::string describe() const;
  /// Names of tensors in the files that the program has no parameter for.
  const std::vector<std::string> &unused() const { return unusedNames; }

private:
  void open(const std::string &path);
  void openIndex(const std::string &path);
  void check(const std::string &path, const Program &program);
  /// Gives the tensor that has all but the first word of `name`, where there is
  /// none of that name, the name: files of a model without its head have
  /// "h.0.ln_1.weight" for "transformer.h.0.ln_1.weight".
  void findBareName(const std::string &name);
  void checkTensor(const std::string &path, const std::string &name,
                   const std::vector<int64_t> &shape) const;

  std::string place; // as given
  std::vector<std::unique_ptr<SafetensorsFile>> files;
  std::map<std::string, TensorView> tensors;
  std::vector<std::string> unusedNames;
};

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_WEIGHTS_H

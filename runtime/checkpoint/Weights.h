// SPDX-License-Identifier: Apache-2.0
//
// A program's weights in the files of model hubs, under their names.
#ifndef ROTA_RUNTIME_CHECKPOINT_WEIGHTS_H
#define ROTA_RUNTIME_CHECKPOINT_WEIGHTS_H

#include "runtime/checkpoint/HubTensors.h"
#include "runtime/program/Program.h"

#include <optional>

namespace rota {

/// One layer's parameter in files: tensors of one size, one after the other.
class StoredParameter {
public:
  explicit StoredParameter(std::vector<const StoredTensor *> parts)
      : parts(std::move(parts)) {}

  /// Elements [begin, end) of the parameter as f32.
  void readFloats(int64_t begin, int64_t end, float *out) const;

private:
  std::vector<const StoredTensor *> parts;
};

class Weights {
public:
  /// `path` as of HubTensors. Names in it may lack the first word. Checks that
  /// every tensor of the program is there with its shape and a float type.
  /// Those of low-rank adapters come from the folder `adapter`, in which no
  /// other tensor may be; without a folder they may be in `path`. Throws
  /// InputError.
  Weights(const std::string &path, const Program &program,
          const std::string &adapter = "");

  /// Nothing where adapters begin with their initializers.
  std::optional<StoredParameter> find(const Parameter &parameter,
                                      int64_t layer) const;
  /// For people: "75 tensors of 'FOLDER'".
  std::string describe() const;
  /// Names of tensors in the files that the program has no parameter for.
  const std::vector<std::string> &unused() const { return unusedNames; }

private:
  void check(const Program &program);
  void checkAdapter(const Program &program);
  static void checkTensor(const HubTensors &hub, const std::string &name,
                          const std::vector<int64_t> &shape);

  std::string place; // as given
  HubTensors hub;
  std::optional<HubTensors> adapter;
  std::vector<std::string> unusedNames;
};

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_WEIGHTS_H

// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a hub's files of weights, by name.
#ifndef ROTA_RUNTIME_CHECKPOINT_HUBTENSORS_H
#define ROTA_RUNTIME_CHECKPOINT_HUBTENSORS_H

#include "runtime/checkpoint/StoredTensor.h"

#include <memory>

namespace rota {

class HubTensors {
public:
  /// `path`: a .safetensors file, a model.safetensors.index.json, or a folder
  /// that holds one of them. Throws InputError.
  explicit HubTensors(const std::string &path);

  /// The file that was named or found.
  const std::string &file() const { return filePath; }
  const std::map<std::string, StoredTensor> &tensors() const { return found; }
  /// Null where there is none of that name.
  const StoredTensor *find(const std::string &name) const;
  /// Gives the tensor that has all but the first word of `name`, where there is
  /// none of that name, the name: files of a model without its head have
  /// "h.0.ln_1.weight" for "transformer.h.0.ln_1.weight".
  void findBareName(const std::string &name);

private:
  void open(const std::string &path);
  void openIndex();

  std::string filePath;
  std::vector<std::unique_ptr<SafetensorsFile>> files;
  std::map<std::string, TensorView> views; // as the files have them
  std::map<std::string, StoredTensor> found;
};

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_HUBTENSORS_H

// SPDX-License-Identifier: Apache-2.0
//
// The contents of a checkpoint: a folder with `manifest.json` and the files
// that it names. The manifest is written last; a folder without it is no
// checkpoint.
#ifndef ROTA_RUNTIME_CHECKPOINT_MANIFEST_H
#define ROTA_RUNTIME_CHECKPOINT_MANIFEST_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rota {

/// A box of a tensor in a file of the checkpoint, row-major and without
/// padding.
struct SavedPiece {
  int file = 0;                     // in Manifest::files
  int64_t offset = 0;               // bytes from the start of the file
  std::vector<int64_t> begin, size; // in each dimension of the whole tensor
  uint64_t hash = 0;                // XXH3, 64 bits, of the piece's bytes
};

/// A tensor of the state. Its pieces cover it and do not overlap.
struct SavedTensor {
  std::string name; // StateTensor::name
  std::string type; // type as safetensors names it: "F32", "BF16"
  std::vector<int64_t> shape;
  std::vector<SavedPiece> pieces;
};

/// Numbers of the run that its next step depends on and that are the same on
/// all ranks; each kept by the part of the trainer that gave it its name.
struct RunState {
  int64_t step = 0;      // steps done
  int64_t sequences = 0; // sequences of training data consumed
  std::map<std::string, std::vector<double>> values; // exact to the bit
};

struct Manifest {
  RunState run;
  // The facts that give the run its meaning, as text by option: "optimizer",
  // "data". Another value on resume is an error unless the user accepts it.
  std::map<std::string, std::string> identity;
  std::string config; // the model's config.json; empty where it had none
  struct File {
    std::string name; // beside the manifest
    int64_t bytes = 0;
  };
  std::vector<File> files;
  std::vector<SavedTensor> tensors; // by name
};

/// The manifest as JSON, and back. Reading trusts nothing: it throws InputError
/// that names `path`, the key and the rule when something is missing, out of
/// bounds, uncovered or covered twice, and when the text was edited.
std::string toJson(const Manifest &manifest);
Manifest manifestFromJson(std::string_view text, const std::string &path);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_MANIFEST_H

// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints with random manifests: an input is the manifest, which gets its
// hash here, and the file rank-0.safetensors. Either the checkpoint is refused
// by an InputError, or each of its tensors is put together from its pieces and
// keeps its bytes in another division.
#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/checkpoint/ReadPart.h"
#include "runtime/checkpoint/Safetensors.h"
#include "test/fuzz/FuzzFiles.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

using namespace rota;
using namespace rota::test;

static void require(bool holds) {
  if (!holds)
    std::abort();
}

static std::vector<char> readBox(Checkpoint &checkpoint,
                                 const SavedTensor &tensor, const Box &box) {
  std::vector<char> memory(static_cast<size_t>(
      std::accumulate(box.room.begin(), box.room.end(), typeBytes(tensor.type),
                      std::multiplies<int64_t>())));
  readPart(checkpoint, tensor, box, memory.data());
  return memory;
}

/// The halves of the tensor along its first dimension are those of the whole.
static void compareHalves(Checkpoint &checkpoint, const SavedTensor &tensor) {
  Box box = wholeBox(tensor.shape);
  std::vector<char> whole = readBox(checkpoint, tensor, box), halves;
  int64_t size = tensor.shape.empty() ? 0 : tensor.shape[0], cut = size / 2;
  if (cut == 0)
    return;
  for (auto [begin, end] : {std::pair(int64_t(0), cut), std::pair(cut, size)}) {
    box.begin[0] = begin;
    box.size[0] = box.room[0] = end - begin;
    std::vector<char> half = readBox(checkpoint, tensor, box);
    halves.insert(halves.end(), half.begin(), half.end());
  }
  require(halves == whole);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzInput input(data, size);
  const TemporaryFolder &folder = fuzzFolder();
  std::string manifest(input.file());
  folder.write(kManifestFile, manifest.empty() ? "" : withHash(manifest));
  folder.write(rankFileName(0), std::string(input.last()));
  try {
    Checkpoint checkpoint(folder.path(""));
    const Manifest &manifest = checkpoint.manifest();
    std::string again = toJson(manifest);
    require(toJson(manifestFromJson(again, "again")) == again);
    for (const SavedTensor &tensor : manifest.tensors)
      compareHalves(checkpoint, tensor);
  } catch (const InputError &) {
  }
  return 0;
}

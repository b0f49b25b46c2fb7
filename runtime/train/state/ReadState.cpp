// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/state/ReadState.h"
#include "runtime/checkpoint/RankFile.h"
#include "runtime/checkpoint/ReadPart.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/program/Convert.h"
#include "runtime/program/State.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace rota {

static const SavedTensor *findTensor(const Manifest &manifest,
                                     const std::string &name) {
  auto found = std::lower_bound(
      manifest.tensors.begin(), manifest.tensors.end(), name,
      [](const SavedTensor &t, const std::string &n) { return t.name < n; });
  return found != manifest.tensors.end() && found->name == name ? &*found
                                                                : nullptr;
}

static bool isPartOf(const StateTensor &tensor, StateExtent extent) {
  return extent == StateExtent::All || tensor.state < 0;
}

/// Whether a tensor may be read from this type. Master copies may have the type
/// of masters or of tasks, as they were updated or frozen in the run that wrote
/// them.
static bool isReadable(const std::string &saved, const StateTensor &tensor) {
  return saved == typeName(tensor.type) ||
         (tensor.state < 0 && (saved == typeName(ElementType::F32) ||
                               saved == typeName(ElementType::BF16)));
}

void checkTensors(const Checkpoint &checkpoint, const Program &program,
                  StateExtent extent) {
  auto fail = [&](const std::string &name, const std::string &message) {
    throw InputError(fmt::format("checkpoint '{}': tensor '{}': {}",
                                 checkpoint.folder(), name, message));
  };
  const Manifest &manifest = checkpoint.manifest();
  std::set<std::string> known;
  for (const StateTensor &tensor : stateTensors(program)) {
    known.insert(tensor.name);
    if (!isPartOf(tensor, extent))
      continue;
    std::string form =
        fmt::format("{} {}", typeName(tensor.type), shapeText(tensor.shape));
    const SavedTensor *saved = findTensor(manifest, tensor.name);
    if (!saved)
      fail(tensor.name, "expected " + form + ", got no such tensor");
    if (saved->shape != tensor.shape || !isReadable(saved->type, tensor))
      fail(tensor.name, fmt::format("expected {}, got {} {}", form, saved->type,
                                    shapeText(saved->shape)));
  }
  if (extent == StateExtent::All)
    for (const SavedTensor &saved : manifest.tensors)
      if (!known.contains(saved.name))
        fail(saved.name, fmt::format("expected no such tensor, got {} {}",
                                     saved.type, shapeText(saved.shape)));
}

/// Reads a part of a tensor of the other one of f32 and bf16.
static void readConverted(Rank &rank, Checkpoint &checkpoint,
                          const SavedTensor &saved, const StateTensor &tensor,
                          const StatePiece &piece) {
  std::vector<float> wide(static_cast<size_t>(piece.part.elements()));
  readFloats(checkpoint, saved, boxOf(piece.part), piece.part.elements(),
             wide.data());
  auto write = [&](const auto &values) {
    rank.device().write(reinterpret_cast<const char *>(values.data()),
                        rank.at(piece.offset), piece.bytes(tensor));
  };
  if (tensor.type == ElementType::F32)
    return write(wide);
  std::vector<uint16_t> narrow(wide.size());
  std::ranges::transform(wide, narrow.begin(), toBf16);
  write(narrow);
}

/// A GPU's part is put together in host memory.
static void readPiece(Rank &rank, Checkpoint &checkpoint,
                      const SavedTensor &saved, const StateTensor &tensor,
                      const StatePiece &piece) {
  if (saved.type != typeName(tensor.type))
    return readConverted(rank, checkpoint, saved, tensor, piece);
  Box box = boxOf(piece.part);
  Device &device = rank.device();
  auto *place = static_cast<char *>(rank.at(piece.offset));
  if (!device.isAsynchronous())
    return readPart(checkpoint, saved, box, place);
  std::vector<char> whole(static_cast<size_t>(piece.bytes(tensor)));
  device.read(place, whole.data(), piece.bytes(tensor));
  readPart(checkpoint, saved, box, whole.data());
  device.write(whole.data(), place, piece.bytes(tensor));
}

void readState(Rank &rank, Checkpoint &checkpoint, StateExtent extent) {
  std::vector<StateTensor> tensors = stateTensors(rank.program());
  for (const StatePiece &piece :
       statePieces(rank.program(), tensors, rank.coordinates())) {
    const StateTensor &tensor = tensors[piece.tensor];
    if (!isPartOf(tensor, extent))
      continue;
    ComputeToken token(rank.cores());
    readPiece(rank, checkpoint, *findTensor(checkpoint.manifest(), tensor.name),
              tensor, piece);
  }
}

} // namespace rota

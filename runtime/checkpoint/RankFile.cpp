// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/RankFile.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/checkpoint/Safetensors.h"

#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rota {

const char *typeName(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "F32";
  case ElementType::BF16:
    return "BF16";
  case ElementType::I32:
    return "I32";
  }
  return "";
}

std::string pieceName(const StateTensor &tensor, const StatePiece &piece) {
  return fmt::format("{}@{}", tensor.name, fmt::join(piece.part.begin, ","));
}

/// Moves the elements of the tensor to the front of the part's memory.
static void removePadding(const Part &part, int64_t elementBytes,
                          char *memory) {
  if (part.valid == part.size)
    return;
  char *end = memory;
  forEachRun(part, 0, part.elements(), [&](int64_t, int64_t from, int64_t n) {
    size_t bytes = static_cast<size_t>(n * elementBytes);
    std::memmove(end, memory + from * elementBytes, bytes);
    end += bytes;
  });
}

RankFile writeRankFile(const std::string &path,
                       const std::vector<StateTensor> &tensors,
                       const StateCopy &copy, char *memory,
                       const std::atomic<bool> &isCancelled) {
  std::map<std::string, TensorForm> forms;
  for (const StatePiece &piece : copy.pieces) {
    const StateTensor &tensor = tensors[piece.tensor];
    forms[pieceName(tensor, piece)] = {typeName(tensor.type), piece.part.valid};
  }
  SafetensorsWriter writer(path, forms);
  RankFile file;
  file.bytes = writer.bytes();
  for (size_t i = 0; i < copy.pieces.size(); ++i) {
    if (isCancelled)
      throw RunError(fmt::format("'{}': writing was cancelled", path));
    const StatePiece &piece = copy.pieces[i];
    const StateTensor &tensor = tensors[piece.tensor];
    char *data = memory + copy.places[i];
    int64_t elementBytes = byteSize(tensor.type);
    removePadding(piece.part, elementBytes, data);
    std::string name = pieceName(tensor, piece);
    size_t bytes =
        static_cast<size_t>(piece.part.validElements() * elementBytes);
    file.pieces.push_back({writer.offsetOf(name), hashOf({data, bytes})});
    writer.write(name, data);
  }
  writer.commit();
  return file;
}

} // namespace rota

// SPDX-License-Identifier: Apache-2.0
#include "ir/rota/sharding/MeshText.h"
#include "ir/rota/Rota.h"
#include "runtime/program/MeshText.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::rota;

static std::string quote(StringRef text) { return "'" + text.str() + "'"; }

static StringRef axisName(size_t number) {
  return stringifyMeshAxis(static_cast<MeshAxis>(number));
}

std::string mlir::rota::meshAxisNames() {
  return llvm::join(
      llvm::map_range(llvm::seq<size_t>(0, getMaxEnumValForMeshAxis() + 1),
                      axisName),
      ", ");
}

std::optional<MeshSizes> mlir::rota::parseMeshSizes(StringRef text,
                                                    std::string &error) {
  auto fail = [&](std::string message) {
    error = std::move(message);
    return std::nullopt;
  };
  MeshSizes sizes(getMaxEnumValForMeshAxis() + 1, 0); // 0: not given
  int64_t product = 1;
  for (StringRef entry : llvm::split(text, ',')) {
    if (text.empty())
      break;
    auto [name, value] = entry.split('=');
    int64_t size;
    if (!entry.contains('=') || value.trim().getAsInteger(10, size))
      return fail("expected AXIS=SIZE, got " + quote(entry));
    std::optional<MeshAxis> axis = symbolizeMeshAxis(name.trim());
    if (!axis)
      return fail("expected an axis of " + meshAxisNames() + ", got " +
                  quote(name.trim()));
    int64_t &place = sizes[static_cast<size_t>(*axis)];
    if (place != 0)
      return fail("axis " + quote(name.trim()) + " stands twice");
    if (size != kInferredSize && (size < 1 || size > kMaxRanks))
      return fail("expected a size from 1 to " + std::to_string(kMaxRanks) +
                  ", or -1, for axis " + quote(name.trim()) + ", got " +
                  std::to_string(size));
    if (size == kInferredSize && llvm::is_contained(sizes, kInferredSize))
      return fail("expected at most one axis of size -1, got " + quote(text));
    place = size;
    if (size != kInferredSize)
      product *= size;
    if (product > kMaxRanks)
      return fail("expected at most " + std::to_string(kMaxRanks) +
                  " ranks, got " + quote(text));
  }
  for (int64_t &size : sizes)
    size = size == 0 ? 1 : size;
  return sizes;
}

bool mlir::rota::fitMeshSizes(MeshSizes &sizes, int64_t ranks,
                              std::string &error) {
  int64_t known = 1;
  int64_t *open = nullptr;
  for (int64_t &size : sizes)
    if (size == kInferredSize)
      open = &size;
    else
      known *= size;
  if (open ? ranks % known == 0 : ranks == known) {
    if (open)
      *open = ranks / known;
    return true;
  }
  error = (open ? "expected the other axes to divide the number of ranks, got "
                : "expected as many ranks as there are devices, got ") +
          std::to_string(known) + " and " + std::to_string(ranks);
  return false;
}

std::string mlir::rota::meshText(ArrayRef<int64_t> sizes) {
  std::string text;
  for (auto [number, size] : llvm::enumerate(sizes))
    ::rota::addAxis(text, axisName(number), size);
  return text;
}

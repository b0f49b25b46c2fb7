// SPDX-License-Identifier: Apache-2.0
//
// Meshes and shardings: their assembly, what makes them valid, and the sizes of
// parts.
#include "ir/rota/sharding/Sharding.h"
#include "ir/rota/sharding/MeshText.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mlir::rota;

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

static ParseResult parseAxisName(AsmParser &parser, MeshAxis &axis) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<MeshAxis> found = symbolizeMeshAxis(name);
  if (!found)
    return parser.emitError(loc)
           << "expected a mesh axis (data, stage, fsdp, expert, context, "
              "sequence or tensor), got '"
           << name << "'";
  axis = *found;
  return success();
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// `tensor` or `tensor:(2)4`.
static ParseResult parseAxisRef(AsmParser &parser, AxisRefAttr &ref) {
  MeshAxis axis;
  SMLoc loc = parser.getCurrentLocation();
  if (parseAxisName(parser, axis))
    return failure();
  int64_t before = 1, size = 0;
  if (succeeded(parser.parseOptionalColon()) &&
      (parser.parseLParen() || parser.parseInteger(before) ||
       parser.parseRParen() || parser.parseInteger(size)))
    return failure();
  auto emitError = [&] { return parser.emitError(loc); };
  ref = AxisRefAttr::getChecked(EmitError(emitError), parser.getContext(), axis,
                                before, size);
  return success(ref != nullptr);
}

static void printAxisRef(raw_ostream &os, AxisRefAttr ref) {
  os << stringifyMeshAxis(ref.getAxis());
  if (!ref.isWhole())
    os << ":(" << ref.getBefore() << ")" << ref.getSize();
}

std::string mlir::rota::axesText(ArrayRef<AxisRefAttr> axes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(
      axes, os, [&](AxisRefAttr ref) { printAxisRef(os, ref); }, "+");
  return text;
}

/// `[data, fsdp]`; with `open` also `[data, ?]`.
static ParseResult parseAxisSet(AsmParser &parser,
                                SmallVectorImpl<AxisRefAttr> &refs,
                                bool *open = nullptr) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() -> ParseResult {
        if (open && !*open && succeeded(parser.parseOptionalQuestion())) {
          *open = true;
          return success();
        }
        return parseAxisRef(parser, refs.emplace_back());
      });
}

static void printAxisSet(AsmPrinter &printer, ArrayRef<AxisRefAttr> refs,
                         bool open = false) {
  printer << "[";
  llvm::interleaveComma(refs, printer, [&](AxisRefAttr ref) {
    printAxisRef(printer.getStream(), ref);
  });
  if (open)
    printer << (refs.empty() ? "?" : ", ?");
  printer << "]";
}

/// `data = 2`, a number of each axis at most once; 0 in `numbers` where there
/// is none.
static ParseResult parseOfAxis(AsmParser &parser,
                               MutableArrayRef<int64_t> numbers,
                               StringRef what) {
  MeshAxis axis;
  int64_t number;
  SMLoc loc = parser.getCurrentLocation();
  if (parseAxisName(parser, axis) || parser.parseEqual() ||
      parser.parseInteger(number))
    return failure();
  int64_t &place = numbers[static_cast<size_t>(axis)];
  if (place != 0)
    return parser.emitError(loc)
           << "expected one " << what << " for each axis, got two for '"
           << stringifyMeshAxis(axis) << "'";
  if (number < 1)
    return parser.emitError(loc)
           << "expected a " << what << " of at least 1 for axis '"
           << stringifyMeshAxis(axis) << "', got " << number;
  place = number;
  return success();
}

static constexpr size_t kAxes = getMaxEnumValForMeshAxis() + 1;

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> sizes(kAxes, 0);
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, [&] {
        return parseOfAxis(parser, sizes, "size");
      }))
    return {};
  for (int64_t &size : sizes)
    size = std::max<int64_t>(size, 1);
  auto emitError = [&] { return parser.emitError(loc); };
  return getChecked(EmitError(emitError), parser.getContext(),
                    ArrayRef<int64_t>(sizes));
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<";
  bool first = true;
  for (auto [number, size] : llvm::enumerate(getSizes())) {
    if (size == 1)
      continue;
    printer << (first ? "" : ", ")
            << stringifyMeshAxis(static_cast<MeshAxis>(number)) << " = "
            << size;
    first = false;
  }
  printer << ">";
}

Attribute WorkAttr::parse(AsmParser &parser, Type) {
  int64_t rank, whole;
  if (parser.parseLess() || parser.parseKeyword("rank") ||
      parser.parseEqual() || parser.parseInteger(rank) || parser.parseComma() ||
      parser.parseKeyword("whole") || parser.parseEqual() ||
      parser.parseInteger(whole))
    return {};
  SmallVector<int64_t> without(kAxes, 0);
  while (succeeded(parser.parseOptionalComma()))
    if (parseOfAxis(parser, without, "number of operations"))
      return {};
  if (parser.parseGreater())
    return {};
  for (int64_t &operations : without)
    if (operations == 0)
      operations = rank;
  return get(parser.getContext(), rank, whole, without);
}

void WorkAttr::print(AsmPrinter &printer) const {
  printer << "<rank = " << getRank() << ", whole = " << getWhole();
  for (auto [number, operations] : llvm::enumerate(getWithout()))
    if (operations != getRank())
      printer << ", " << stringifyMeshAxis(static_cast<MeshAxis>(number))
              << " = " << operations;
  printer << ">";
}

Attribute AxisRefAttr::parse(AsmParser &parser, Type) {
  AxisRefAttr ref;
  if (parser.parseLess() || parseAxisRef(parser, ref) || parser.parseGreater())
    return {};
  return ref;
}

void AxisRefAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printAxisRef(printer.getStream(), *this);
  printer << ">";
}

Attribute DimensionShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<AxisRefAttr> refs;
  bool open = false;
  if (parser.parseLess() || parseAxisSet(parser, refs, &open) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), refs, open);
}

void DimensionShardingAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printAxisSet(printer, getAxes(), getOpen());
  printer << ">";
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<DimensionShardingAttr> dimensions;
  SmallVector<AxisRefAttr> unreduced, replicated;
  SMLoc loc = parser.getCurrentLocation();
  auto parseDimension = [&]() -> ParseResult {
    SmallVector<AxisRefAttr> refs;
    bool open = false;
    if (parseAxisSet(parser, refs, &open))
      return failure();
    dimensions.push_back(
        DimensionShardingAttr::get(parser.getContext(), refs, open));
    return success();
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseDimension) ||
      (succeeded(parser.parseOptionalKeyword("unreduced")) &&
       parseAxisSet(parser, unreduced)) ||
      (succeeded(parser.parseOptionalKeyword("replicated")) &&
       parseAxisSet(parser, replicated)) ||
      parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  return getChecked(EmitError(emitError), parser.getContext(),
                    ArrayRef<DimensionShardingAttr>(dimensions),
                    ArrayRef<AxisRefAttr>(unreduced),
                    ArrayRef<AxisRefAttr>(replicated));
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(
      getDimensions(), printer, [&](DimensionShardingAttr dimension) {
        printAxisSet(printer, dimension.getAxes(), dimension.getOpen());
      });
  printer << "]";
  if (!getUnreduced().empty()) {
    printer << " unreduced ";
    printAxisSet(printer, getUnreduced());
  }
  if (!getReplicated().empty()) {
    printer << " replicated ";
    printAxisSet(printer, getReplicated());
  }
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

LogicalResult MeshAttr::verify(EmitError emitError, ArrayRef<int64_t> sizes) {
  if (sizes.size() != getMaxEnumValForMeshAxis() + 1)
    return emitError() << "expected a size for each of the "
                       << getMaxEnumValForMeshAxis() + 1 << " axes, got "
                       << sizes.size();
  int64_t ranks = 1;
  for (auto [number, size] : llvm::enumerate(sizes)) {
    if (size < 1 || size > kMaxRanks)
      return emitError() << "expected a size between 1 and " << kMaxRanks
                         << " for axis '"
                         << stringifyMeshAxis(static_cast<MeshAxis>(number))
                         << "', got " << size;
    ranks *= size;
    if (ranks > kMaxRanks)
      return emitError() << "expected at most " << kMaxRanks
                         << " ranks in a mesh";
  }
  return success();
}

LogicalResult AxisRefAttr::verify(EmitError emitError, MeshAxis axis,
                                  int64_t before, int64_t size) {
  bool whole = size == 0 && before == 1;
  if (!whole && (before < 1 || size < 2))
    return emitError() << "expected a part of axis '" << stringifyMeshAxis(axis)
                       << "' of size 2 or more with a positive size in front, "
                          "got ("
                       << before << ")" << size;
  return success();
}

/// True when the two certainly name a common part, whatever the axis's size: a
/// whole axis has all parts, and two parts overlap unless one ends before the
/// other begins.
static bool certainlyOverlap(AxisRefAttr a, AxisRefAttr b) {
  if (a.getAxis() != b.getAxis())
    return false;
  if (a.isWhole() || b.isWhole())
    return true;
  return a.getBefore() < b.getBefore() * b.getSize() &&
         b.getBefore() < a.getBefore() * a.getSize();
}

bool mlir::rota::overlap(AxisRefAttr a, AxisRefAttr b, MeshAttr mesh) {
  return mesh.getSize(a) > 1 && mesh.getSize(b) > 1 && certainlyOverlap(a, b);
}

LogicalResult ShardingAttr::verify(EmitError emitError,
                                   ArrayRef<DimensionShardingAttr> dimensions,
                                   ArrayRef<AxisRefAttr> unreduced,
                                   ArrayRef<AxisRefAttr> replicated) {
  SmallVector<AxisRefAttr> all;
  for (DimensionShardingAttr dimension : dimensions)
    llvm::append_range(all, dimension.getAxes());
  llvm::append_range(all, unreduced);
  llvm::append_range(all, replicated);
  // C1: an axis, or a part of it, stands at most once.
  for (auto [i, a] : llvm::enumerate(all))
    for (AxisRefAttr b : ArrayRef(all).take_front(i))
      if (certainlyOverlap(a, b))
        return emitError() << "expected each axis at most once in a sharding, "
                              "got '"
                           << stringifyMeshAxis(a.getAxis()) << "' twice";
  return success();
}

LogicalResult mlir::rota::verifyAxes(Operation *op,
                                     ArrayRef<AxisRefAttr> axes) {
  MeshOp mesh = meshOpOf(op);
  for (AxisRefAttr ref : axes) {
    if (!mesh || ref.isWhole())
      continue;
    int64_t size = mesh.getMesh().getSize(ref.getAxis());
    if (size % (ref.getBefore() * ref.getSize()) == 0)
      continue;
    auto diagnostic = op->emitError("expected parts that divide axis '")
                      << stringifyMeshAxis(ref.getAxis()) << "' of size "
                      << size << ", got (" << ref.getBefore() << ")"
                      << ref.getSize();
    diagnostic.attachNote(mesh.getLoc()) << "the mesh";
    return diagnostic;
  }
  return success();
}

LogicalResult mlir::rota::verifySharding(Operation *op, ShardingAttr sharding,
                                         int64_t rank) {
  int64_t entries = sharding.getDimensions().size();
  if (rank != entries)
    return op->emitError("expected a sharding with an entry for each of the ")
           << rank << " dimensions, got " << entries;
  SmallVector<AxisRefAttr> axes = dividingAxes(sharding);
  llvm::append_range(axes, sharding.getUnreduced());
  llvm::append_range(axes, sharding.getReplicated());
  return verifyAxes(op, axes);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

int64_t MeshAttr::getSize(AxisRefAttr ref) const {
  return ref.isWhole() ? getSize(ref.getAxis()) : ref.getSize();
}

int64_t MeshAttr::getSize(ArrayRef<AxisRefAttr> refs) const {
  int64_t size = 1;
  for (AxisRefAttr ref : refs)
    size *= getSize(ref);
  return size;
}

int64_t MeshAttr::getRanks() const { return llvm::product_of(getSizes()); }

MeshOp mlir::rota::meshOpOf(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (module)
    for (MeshOp mesh : module.getOps<MeshOp>())
      return mesh;
  return {};
}

MeshAttr mlir::rota::meshOf(Operation *op) {
  if (MeshOp mesh = meshOpOf(op))
    return mesh.getMesh();
  SmallVector<int64_t> sizes(getMaxEnumValForMeshAxis() + 1, 1);
  return MeshAttr::get(op->getContext(), sizes);
}

ShardingAttr mlir::rota::replicatedSharding(MLIRContext *context,
                                            int64_t rank) {
  SmallVector<DimensionShardingAttr> dimensions(
      rank, DimensionShardingAttr::get(context, {}, /*open=*/false));
  return ShardingAttr::get(context, dimensions, {}, {});
}

SmallVector<AxisRefAttr> mlir::rota::dividingAxes(ShardingAttr sharding) {
  SmallVector<AxisRefAttr> axes;
  for (DimensionShardingAttr dimension : sharding.getDimensions())
    llvm::append_range(axes, dimension.getAxes());
  return axes;
}

SmallVector<AxisRefAttr> mlir::rota::mergedAxes(ArrayRef<AxisRefAttr> axes,
                                                MeshAttr mesh) {
  SmallVector<AxisRefAttr> merged;
  for (AxisRefAttr ref : axes) {
    MeshAxis axis = ref.getAxis();
    int64_t before = ref.getBefore(), size = mesh.getSize(ref);
    if (size == 1)
      continue;
    if (!merged.empty() && merged.back().getAxis() == axis) {
      AxisRefAttr last = merged.back();
      if (last.getBefore() * mesh.getSize(last) == before) {
        before = last.getBefore();
        size *= mesh.getSize(last);
        merged.pop_back();
      }
    }
    bool isWhole = before == 1 && size == mesh.getSize(axis);
    bool isMerged = before != ref.getBefore() || size != mesh.getSize(ref);
    if (!isMerged && isWhole == ref.isWhole()) {
      merged.push_back(ref); // without a search for the attribute
      continue;
    }
    merged.push_back(
        isWhole ? AxisRefAttr::get(mesh.getContext(), axis)
                : AxisRefAttr::get(mesh.getContext(), axis, before, size));
  }
  return merged;
}

SmallVector<int64_t> mlir::rota::partShape(ArrayRef<int64_t> whole,
                                           ShardingAttr sharding,
                                           MeshAttr mesh) {
  SmallVector<int64_t> shape(whole);
  for (auto [size, dimension] :
       llvm::zip_equal(shape, sharding.getDimensions()))
    size = llvm::divideCeil(size, mesh.getSize(dimension.getAxes()));
  return shape;
}

RankedTensorType mlir::rota::partType(RankedTensorType whole,
                                      ShardingAttr sharding, MeshAttr mesh) {
  return whole.clone(partShape(whole.getShape(), sharding, mesh));
}

// SPDX-License-Identifier: Apache-2.0
//
// Registration of the pipe dialect, and its custom assembly.
#include "ir/pipe/Pipe.h"
#include "ir/rota/Assembly.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::pipe;

#include "ir/pipe/PipeDialect.cpp.inc"
#include "ir/pipe/PipeEnums.cpp.inc"

using mlir::rota::parseCount;
using mlir::rota::printCount;

/// Prints a list in brackets, an element a line.
template <typename Elements, typename Function>
static void printLines(OpAsmPrinter &printer, const Elements &elements,
                       Function printElement) {
  printer << "[";
  printer.increaseIndent();
  llvm::interleave(
      elements,
      [&](const auto &element) {
        printer.printNewline();
        printElement(element);
      },
      [&] { printer << ","; });
  printer.decreaseIndent();
  if (!elements.empty())
    printer.printNewline();
  printer << "]";
}

/// Appends the row with this text. C2: it is a list of actions, on one line.
static LogicalResult
addRow(StringRef text, ::rota::pipe::ActionRows &rows,
       llvm::function_ref<InFlightDiagnostic()> emitError) {
  std::string error;
  auto parsed = ::rota::pipe::parseCsv({text.data(), text.size()}, error);
  if (!parsed)
    return emitError() << "row " << rows.size() << ", " << error;
  if (parsed->size() != 1)
    return emitError() << "expected row " << rows.size() << " on one line, got "
                       << parsed->size();
  rows.push_back(std::move(parsed->front()));
  return success();
}

static std::string textOf(const std::vector<::rota::pipe::Action> &row) {
  std::string text = ::rota::pipe::printCsv({row});
  text.pop_back(); // the line break
  return text;
}

static ParseResult parseRows(OpAsmParser &parser,
                             ::rota::pipe::ActionRows &rows) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() -> ParseResult {
        std::string row;
        return failure(parser.parseString(&row) ||
                       failed(addRow(row, rows, [&] {
                         return parser.emitError(parser.getNameLoc());
                       })));
      });
}

static void printRows(OpAsmPrinter &printer, Operation *,
                      const ::rota::pipe::ActionRows &rows) {
  printLines(printer, rows,
             [&](const auto &row) { printer.printString(textOf(row)); });
}

namespace mlir::pipe {

// The rows in the generic form of the op: an array of their texts.

static Attribute convertToAttribute(MLIRContext *context,
                                    const ::rota::pipe::ActionRows &rows) {
  SmallVector<Attribute> texts;
  for (const auto &row : rows)
    texts.push_back(StringAttr::get(context, textOf(row)));
  return ArrayAttr::get(context, texts);
}

static LogicalResult
convertFromAttribute(::rota::pipe::ActionRows &rows, Attribute attribute,
                     llvm::function_ref<InFlightDiagnostic()> emitError) {
  auto texts = dyn_cast_or_null<ArrayAttr>(attribute);
  if (!texts)
    return emitError() << "expected 'rows' to be an array of strings, got "
                       << attribute;
  rows.clear();
  for (Attribute element : texts) {
    auto text = dyn_cast<StringAttr>(element);
    if (!text)
      return emitError() << "expected 'rows' to be an array of strings, got "
                         << attribute;
    if (failed(addRow(text, rows, emitError)))
      return failure();
  }
  return success();
}

static llvm::hash_code hashRows(const ::rota::pipe::ActionRows &rows) {
  llvm::hash_code hash = llvm::hash_value(rows.size());
  for (const auto &row : rows)
    for (const ::rota::pipe::Action &action : row)
      hash = llvm::hash_combine(hash, action.chunk, action.kind,
                                action.microbatch, action.startsPair);
  return hash;
}

} // namespace mlir::pipe

static ParseResult parseChunkTable(OpAsmParser &parser, ArrayAttr &chunks) {
  SmallVector<Attribute> elements;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        elements.push_back(ChunkAttr::parse(parser, {}));
        return success(elements.back() != nullptr);
      }))
    return failure();
  chunks = parser.getBuilder().getArrayAttr(elements);
  return success();
}

static void printChunkTable(OpAsmPrinter &printer, Operation *,
                            ArrayAttr chunks) {
  printLines(printer, chunks,
             [&](Attribute chunk) { cast<ChunkAttr>(chunk).print(printer); });
}

Attribute ChunkAttr::parse(AsmParser &parser, Type) {
  int64_t rank = kAllRanks;
  SmallVector<FlatSymbolRefAttr> kinds;
  SmallVector<int64_t> layers;
  if (parser.parseLess() || parser.parseKeyword("rank"))
    return {};
  if (failed(parser.parseOptionalKeyword("all")) && parser.parseInteger(rank))
    return {};
  bool embeds = succeeded(parser.parseOptionalKeyword("embed"));
  if (parser.parseKeyword("layers") ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        StringAttr kind;
        if (parser.parseSymbolName(kind) ||
            parser.parseInteger(layers.emplace_back()))
          return failure();
        kinds.push_back(FlatSymbolRefAttr::get(kind));
        return success();
      }))
    return {};
  bool hasLoss = succeeded(parser.parseOptionalKeyword("loss"));
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), rank, embeds, kinds, layers, hasLoss);
}

void ChunkAttr::print(AsmPrinter &printer) const {
  printer << "<rank ";
  if (getRank() == kAllRanks)
    printer << "all";
  else
    printer << getRank();
  printer << (getEmbeds() ? " embed" : "") << " layers [";
  llvm::interleaveComma(llvm::zip(getKinds(), getLayers()), printer,
                        [&](auto entry) {
                          auto [kind, layer] = entry;
                          printer << kind << " " << layer;
                        });
  printer << "]" << (getHasLoss() ? " loss>" : ">");
}

#define GET_ATTRDEF_CLASSES
#include "ir/pipe/PipeAttributes.cpp.inc"
#define GET_OP_CLASSES
#include "ir/pipe/PipeOps.cpp.inc"

void PipeDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/pipe/PipeAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/pipe/PipeOps.cpp.inc"
      >();
}

::rota::pipe::Shape ProgramOp::getShape() {
  ::rota::pipe::Shape shape;
  shape.stages = getStages();
  shape.repeats = getRepeats();
  shape.microbatches = getMicrobatches();
  shape.placement = static_cast<::rota::pipe::Placement>(getPlacement());
  shape.hasUnpipelined = getUnpipelined();
  shape.parts = getParts().value_or(1);
  return shape;
}

ChunksOp ProgramOp::getChunks() { return *getOps<ChunksOp>().begin(); }

TimelineOp ProgramOp::getTimeline() {
  auto timelines = getOps<TimelineOp>();
  return timelines.empty() ? TimelineOp() : *timelines.begin();
}

::mlir::rota::StackOp ProgramOp::getStackOp() {
  return SymbolTable::lookupNearestSymbolFrom<::mlir::rota::StackOp>(
      (*this)->getParentOp(), getStackAttr());
}

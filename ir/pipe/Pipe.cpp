// SPDX-License-Identifier: Apache-2.0
//
// Registration of the pipe dialect, its custom assembly, and the bridge to
// plain timelines.
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
template <typename Function>
static void printLines(OpAsmPrinter &printer, ArrayAttr elements,
                       Function printElement) {
  printer << "[";
  printer.increaseIndent();
  llvm::interleave(
      elements,
      [&](Attribute element) {
        printer.printNewline();
        printElement(element);
      },
      [&] { printer << ","; });
  printer.decreaseIndent();
  if (!elements.empty())
    printer.printNewline();
  printer << "]";
}

static ParseResult parseRows(OpAsmParser &parser, ArrayAttr &rows) {
  SmallVector<Attribute> elements;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        StringAttr row;
        if (parser.parseAttribute(row))
          return failure();
        elements.push_back(row);
        return success();
      }))
    return failure();
  rows = parser.getBuilder().getArrayAttr(elements);
  return success();
}

static void printRows(OpAsmPrinter &printer, Operation *, ArrayAttr rows) {
  printLines(printer, rows,
             [&](Attribute row) { printer.printAttribute(row); });
}

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
  shape.placement = getPlacement() == Placement::V
                        ? ::rota::pipe::Placement::V
                        : ::rota::pipe::Placement::Loop;
  shape.outer = getOuter();
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

static ArrayAttr rowsOf(MLIRContext *context,
                        const ::rota::pipe::Timeline &timeline) {
  SmallVector<Attribute> rows;
  for (const std::vector<::rota::pipe::Action> &row : timeline.ranks) {
    std::string text = ::rota::pipe::printCsv({row});
    text.pop_back(); // the line break
    rows.push_back(StringAttr::get(context, text));
  }
  return ArrayAttr::get(context, rows);
}

/// The attribute of a window's bound; null when there is no bound.
static IntegerAttr windowOf(MLIRContext *context,
                            const ::rota::pipe::Timeline &timeline) {
  if (timeline.window == 0)
    return {};
  return Builder(context).getI64IntegerAttr(timeline.window);
}

void TimelineOp::build(OpBuilder &builder, OperationState &state,
                       StringRef schedule,
                       const ::rota::pipe::Timeline &timeline) {
  build(builder, state, builder.getStringAttr(schedule),
        builder.getI64IntegerAttr(timeline.delay),
        windowOf(builder.getContext(), timeline),
        rowsOf(builder.getContext(), timeline));
}

::rota::pipe::Timeline TimelineOp::read() {
  ::rota::pipe::Timeline timeline;
  timeline.shape = cast<ProgramOp>((*this)->getParentOp()).getShape();
  timeline.delay = getDelay();
  timeline.window = getWindow().value_or(0);
  for (StringRef row : getRows().getAsValueRange<StringAttr>()) {
    std::string error;
    auto parsed = ::rota::pipe::parseCsv(row.str(), error);
    timeline.ranks.push_back(parsed ? std::move(parsed->front())
                                    : std::vector<::rota::pipe::Action>());
  }
  return timeline;
}

void TimelineOp::write(const ::rota::pipe::Timeline &timeline) {
  setRowsAttr(rowsOf(getContext(), timeline));
  setDelay(timeline.delay);
  if (IntegerAttr window = windowOf(getContext(), timeline))
    setWindowAttr(window);
  else
    removeWindowAttr();
}

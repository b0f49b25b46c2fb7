// SPDX-License-Identifier: Apache-2.0
//
// Gives each function of the model its role, the role its frame, and lowers it.
#include "lowering/executable/Tasks.h"
#include "lowering/executable/Parameters.h"
#include "lowering/executable/TaskCode.h"

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {
namespace {

using memory::FrameField;

/// Places of consecutive values in one block of the frame.
class BlockWriter {
public:
  explicit BlockWriter(FrameField field) : field(field) {}
  void add(Type type, SmallVectorImpl<Location> &places) {
    places.push_back({field, packer.add(tensorBytes(type)), {}});
  }
  int64_t bytes() const { return packer.bytes(); }

private:
  FrameField field;
  memory::Packer packer;
};

class Lowering {
public:
  Lowering(const Model &model, KernelLibrary &library)
      : model(model), library(library), writer(model.module->getContext()) {}

  FailureOr<LoweredModel> run() {
    layout.kinds.resize(model.kinds().size());
    auto places = layOutParameters(model, layout);
    if (failed(places))
      return failure();
    layout.activationBytes = tensorBytes(model.activationType());
    describeData();
    size_t number = 0;
    for (LayerOp kind : model.kinds()) {
      if (failed(lowerKind(kind, (*places)[number], layout.kinds[number])))
        return failure();
      ++number;
    }
    if (failed(lowerEmbed((*places)[number])) ||
        failed(lowerLoss((*places)[number + 1])))
      return failure();
    layout.tables = tables.tables();
    layout.constantBytes = tables.bytes();
    return LoweredModel{std::move(layout), writer.take()};
  }

private:
  void describeData() {
    Program &program = layout.program;
    func::FuncOp embed = model.embed, loss = model.loss;
    program.input = form(embed.getArgumentTypes()[0]);
    program.target = form(loss.getArgumentTypes()[1]);
    program.parameterCount = model.parameterCount();
    embed.walk([&](EmbeddingOp op) {
      program.vocabulary =
          cast<RankedTensorType>(op.getTable().getType()).getDimSize(0);
    });
    if (func::FuncOp logits = model.function("logits"))
      program.logits = form(logits.getResultTypes()[0]);
  }

  static DataForm form(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    Type element = tensor.getElementType();
    DataForm form;
    form.type = element.isInteger() ? ElementType::I32
                : element.isBF16()  ? ElementType::BF16
                                    : ElementType::F32;
    form.shape = tensor.getShape().vec();
    return form;
  }

  /// Lowers `function` to the task `symbol`; its number, or -1 when there is no
  /// such function.
  FailureOr<int> lower(func::FuncOp function, Twine symbol,
                       const FunctionPlaces &places) {
    if (!function)
      return -1;
    auto buffers = assignBuffers(function, places, tables, library);
    if (failed(buffers))
      return failure();
    std::string name = symbol.str();
    writer.add(function.getLoc(), name, *buffers);
    layout.scratchBytes.push_back(buffers->scratchBytes);
    layout.program.tasks.push_back(name);
    return static_cast<int>(layout.scratchBytes.size()) - 1;
  }

  /// Places for the arguments from `begin` to the last but `end`.
  static void addArguments(func::FuncOp function, size_t begin, size_t end,
                           BlockWriter &&block, FunctionPlaces &places) {
    auto types = function.getArgumentTypes();
    for (Type type : types.slice(begin, types.size() - end - begin))
      block.add(type, places.arguments);
  }
  static int64_t addResults(func::FuncOp function, size_t begin,
                            FrameField field, FunctionPlaces &places) {
    BlockWriter block(field);
    for (Type type : function.getResultTypes().drop_front(begin))
      block.add(type, places.results);
    return block.bytes();
  }

  static Location at(FrameField field, int64_t offset = 0) {
    return {field, offset, {}};
  }

  LogicalResult lowerKind(LayerOp kind, const ParamPlaces &params,
                          memory::TaskGroup &group) {
    group.name = kind.getSymName();
    func::FuncOp forward = Model::function(kind, function::forward);
    func::FuncOp backward = Model::function(kind, function::backward);
    func::FuncOp input = Model::function(kind, function::backwardInput);
    func::FuncOp weight = Model::function(kind, function::backwardWeight);
    if (!forward || (!backward && !(input && weight)))
      return kind.emitOpError("expected a differentiated layer, with 'forward' "
                              "and 'backward' or its two halves");
    size_t residuals = forward.getNumResults() - 1;
    FunctionPlaces places{{at(memory::Input)}, {at(memory::Output)}, params};
    group.residualBytes = addResults(forward, 1, memory::Residuals, places);
    if (failed(assign(group.forward, forward, group.name + ".forward", places)))
      return failure();
    if (backward &&
        failed(lowerBackward(backward, group.name + ".backward", params,
                             group.backward, group.cotangentBytes)))
      return failure();
    if (!input)
      return success();
    if (failed(lowerBackward(input, group.name + ".backward_input", params,
                             group.backwardInput, group.cotangentBytes)))
      return failure();
    FunctionPlaces last{{at(memory::Input)}, {}, params};
    size_t cotangents = weight.getNumArguments() - 1 - residuals;
    addArguments(weight, 1, cotangents, BlockWriter(memory::Residuals), last);
    addArguments(weight, 1 + residuals, 0, BlockWriter(memory::Cotangents),
                 last);
    return assign(group.backwardWeight, weight, group.name + ".backward_weight",
                  last);
  }

  /// backward or backward_input: (activation, residuals..., cotangent) ->
  /// (cotangent, cotangents for the other half...).
  LogicalResult lowerBackward(func::FuncOp function, const std::string &symbol,
                              const ParamPlaces &params, int &task,
                              int64_t &cotangentBytes) {
    FunctionPlaces places{
        {at(memory::Input)}, {at(memory::InputCotangent)}, params};
    addArguments(function, 1, 1, BlockWriter(memory::Residuals), places);
    places.arguments.push_back(at(memory::OutputCotangent));
    cotangentBytes = addResults(function, 1, memory::Cotangents, places);
    return assign(task, function, symbol, places);
  }

  LogicalResult lowerEmbed(const ParamPlaces &params) {
    layout.embed.name = function::embed;
    FunctionPlaces forward{{at(memory::Data)}, {at(memory::Output)}, params};
    FunctionPlaces backward{
        {at(memory::Data), at(memory::OutputCotangent)}, {}, params};
    return success(succeeded(assign(layout.embed.forward, model.embed, "embed",
                                    forward)) &&
                   succeeded(assign(layout.embed.backward,
                                    model.function(function::embedBackward),
                                    "embed_backward", backward)));
  }

  LogicalResult lowerLoss(const ParamPlaces &params) {
    memory::TaskGroup &group = layout.loss;
    group.name = function::loss;
    FunctionPlaces places{{at(memory::Input), at(memory::Data)},
                          {at(memory::Loss, 0), at(memory::Loss, 4)},
                          params};
    if (failed(assign(group.forward, model.loss, "loss", places)) ||
        failed(lowerLogits(params)))
      return failure();
    places.results.push_back(at(memory::InputCotangent));
    if (failed(assign(group.backward, model.function(function::lossBackward),
                      "loss_backward", places)))
      return failure();
    func::FuncOp input = model.function(function::lossBackwardInput);
    func::FuncOp weight = model.function(function::lossBackwardWeight);
    if (group.backward >= 0)
      return success();
    if (!input || !weight)
      return func::FuncOp(model.loss)
          .emitOpError("expected a differentiated model, with 'loss_backward' "
                       "or its two "
                       "halves");
    group.cotangentBytes = addResults(input, 3, memory::Cotangents, places);
    if (failed(
            assign(group.backwardInput, input, "loss_backward_input", places)))
      return failure();
    FunctionPlaces last{{at(memory::Input), at(memory::Data)}, {}, params};
    addArguments(weight, 2, 0, BlockWriter(memory::Cotangents), last);
    return assign(group.backwardWeight, weight, "loss_backward_weight", last);
  }

  /// logits(activation) or logits(activation, targets).
  LogicalResult lowerLogits(const ParamPlaces &params) {
    func::FuncOp logits = model.function("logits");
    if (!logits)
      return success();
    FunctionPlaces places{{at(memory::Input)}, {at(memory::Output)}, params};
    if (logits.getNumArguments() == 2)
      places.arguments.push_back(at(memory::Data));
    return assign(layout.logits, logits, "logits", places);
  }

  LogicalResult assign(int &task, func::FuncOp function, Twine symbol,
                       const FunctionPlaces &places) {
    auto number = lower(function, symbol, places);
    if (failed(number))
      return failure();
    task = *number;
    return success();
  }

  const Model &model;
  KernelLibrary &library;
  TaskWriter writer;
  ConstantTables tables;
  memory::Layout layout;
};

} // namespace

FailureOr<LoweredModel> lowerTasks(ModuleOp module, KernelLibrary &library) {
  auto model = Model::get(module);
  if (failed(model))
    return failure();
  return Lowering(*model, library).run();
}

} // namespace rota::lowering

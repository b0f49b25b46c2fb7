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
  void add(Type type, SmallVectorImpl<BufferAddress> &places) {
    places.push_back({field, packer.add(tensorBytes(type)), {}});
  }
  int64_t bytes() const { return packer.bytes(); }

private:
  FrameField field;
  memory::Packer packer;
};

/// Places of a layer's residuals: some stay on the device, some may rest in
/// host memory.
class ResidualWriter {
public:
  explicit ResidualWriter(func::FuncOp forward) : forward(forward) {}

  void add(SmallVectorImpl<BufferAddress> &places) {
    for (unsigned i = 1; i < forward.getNumResults(); ++i) {
      bool rests = !!forward.getResultAttr(
          i, RotaDialect::OffloadAttrHelper::getNameStr());
      (rests ? offloaded : staying).add(forward.getResultTypes()[i], places);
    }
  }
  int64_t stayingBytes() const { return staying.bytes(); }
  int64_t offloadedBytes() const { return offloaded.bytes(); }

private:
  func::FuncOp forward;
  BlockWriter staying{memory::Residuals}, offloaded{memory::Offloaded};
};

class Lowering {
public:
  Lowering(const Model &model, std::vector<AuxiliaryLoss> losses,
           const ProgramMesh &mesh, KernelLibrary &library)
      : model(model), mesh(mesh), library(library),
        writer(model.module->getContext()), tables(std::move(losses)),
        collectives(mesh, layout.program.collectives) {}

  FailureOr<LoweredModel> run() {
    layout.program.mesh = mesh.axes();
    layout.kinds.resize(model.kinds().size());
    auto places = layOutParameters(model, collectives, layout);
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
    layout.shardOffsets = tables.shardOffsets();
    layout.program.auxiliaryLosses = tables.auxiliaryLosses();
    layout.auxiliaryCotangents = tables.auxiliaryCotangents();
    layout.constantBytes = tables.bytes();
    return LoweredModel{std::move(layout), writer.take()};
  }

private:
  void describeData() {
    Program &program = layout.program;
    func::FuncOp embed = model.embed, loss = model.loss;
    StringRef sharding = RotaDialect::ShardingAttrHelper::getNameStr();
    program.input = form(embed.getArgumentTypes()[0],
                         embed.getArgAttrOfType<ShardingAttr>(0, sharding));
    program.target = form(loss.getArgumentTypes()[1],
                          loss.getArgAttrOfType<ShardingAttr>(1, sharding));
    program.parameterCount = model.parameterCount();
    embed.walk(
        [&](EmbeddingOp op) { program.vocabulary = rowsOf(op.getTable()); });
    if (func::FuncOp logits = model.function("logits"))
      program.logits =
          form(logits.getResultTypes()[0],
               cast_or_null<ShardingAttr>(logits.getResultAttr(0, sharding)));
    // Parts of logits may end in padding.
    if (program.vocabulary > 0 && !program.logits.shape.empty())
      program.logits.shape.back() =
          std::min(program.logits.shape.back(), program.vocabulary);
    if (auto sum = cast_or_null<ShardingAttr>(loss.getResultAttr(0, sharding)))
      program.lossAxes = mesh.axesOf(sum.getUnreduced());
  }

  /// Rows of a whole table, of which functions may see a part.
  static int64_t rowsOf(Value table) {
    auto read = table.getDefiningOp<ReadOp>();
    ParamOp param =
        read ? lookupParam(read, read.getParamAttr().getAttr()) : ParamOp();
    if (param && param.getPlacement())
      return param.getPlacementAttr().getWhole().front();
    return cast<RankedTensorType>(table.getType()).getDimSize(0);
  }

  /// Of a value that has `type` on each rank.
  DataForm form(Type type, ShardingAttr sharding) const {
    DataForm form;
    form.type = elementTypeOf(type);
    form.shape = cast<RankedTensorType>(type).getShape().vec();
    if (!sharding)
      return form;
    form.division = mesh.divisionOf(sharding);
    for (auto [size, axes] : llvm::zip_equal(form.shape, form.division))
      size *= groupSize(mesh.axes(), axes);
    return form;
  }

  /// Lowers `function` to the task `symbol`; its number, or -1 when there is no
  /// such function.
  FailureOr<int> lower(func::FuncOp function, Twine symbol,
                       const FunctionPlaces &places) {
    if (!function)
      return -1;
    auto buffers =
        assignBuffers(function, places, tables, collectives, library);
    if (failed(buffers))
      return failure();
    std::string name = symbol.str();
    writer.add(function.getLoc(), name, *buffers);
    layout.scratchBytes.push_back(buffers->scratchBytes);
    layout.program.tasks.push_back(name);
    return static_cast<int>(layout.scratchBytes.size()) - 1;
  }

  /// Places for the arguments from `begin` on.
  static void addArguments(func::FuncOp function, size_t begin,
                           BlockWriter &&block, FunctionPlaces &places) {
    for (Type type : function.getArgumentTypes().drop_front(begin))
      block.add(type, places.arguments);
  }
  static int64_t addResults(func::FuncOp function, size_t begin,
                            FrameField field, FunctionPlaces &places) {
    BlockWriter block(field);
    for (Type type : function.getResultTypes().drop_front(begin))
      block.add(type, places.results);
    return block.bytes();
  }

  static BufferAddress at(FrameField field, int64_t offset = 0) {
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
    FunctionPlaces places{{at(memory::Input)}, {at(memory::Output)}, params};
    ResidualWriter residuals(forward);
    residuals.add(places.results);
    forward.walk([&](AuxiliaryLossOp loss) {
      group.auxiliaryLosses.push_back(tables.auxiliaryLoss(loss.getName()));
    });
    group.residualBytes = residuals.stayingBytes();
    group.offloadedBytes = residuals.offloadedBytes();
    if (failed(assign(group.forward, forward, group.name + ".forward", places)))
      return failure();
    func::FuncOp first = backward ? backward : input;
    group.offloadsInput =
        !!first.getArgAttr(0, RotaDialect::OffloadAttrHelper::getNameStr());
    if (backward &&
        failed(lowerBackward(backward, group.name + ".backward", forward,
                             params, group.backward, group.cotangentBytes)))
      return failure();
    if (!input)
      return success();
    if (failed(lowerBackward(input, group.name + ".backward_input", forward,
                             params, group.backwardInput,
                             group.cotangentBytes)))
      return failure();
    FunctionPlaces last{{at(memory::Input)}, {}, params};
    ResidualWriter(forward).add(last.arguments);
    addArguments(weight, forward.getNumResults(),
                 BlockWriter(memory::Cotangents), last);
    return assign(group.backwardWeight, weight, group.name + ".backward_weight",
                  last);
  }

  /// backward or backward_input: (activation, residuals..., cotangent) ->
  /// (cotangent, cotangents for the other half...).
  LogicalResult lowerBackward(func::FuncOp function, const std::string &symbol,
                              func::FuncOp forward, const ParamPlaces &params,
                              int &task, int64_t &cotangentBytes) {
    FunctionPlaces places{
        {at(memory::Input)}, {at(memory::InputCotangent)}, params};
    ResidualWriter(forward).add(places.arguments);
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
        failed(lowerLogits(params)) || failed(lowerLossWeight(params)))
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
    addArguments(weight, 2, BlockWriter(memory::Cotangents), last);
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

  /// loss_weight(targets), whose result goes where loss writes the weight.
  LogicalResult lowerLossWeight(const ParamPlaces &params) {
    FunctionPlaces places{{at(memory::Data)}, {at(memory::Loss, 4)}, params};
    return assign(layout.lossWeight, model.function(function::lossWeight),
                  "loss_weight", places);
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
  const ProgramMesh &mesh;
  KernelLibrary &library;
  TaskWriter writer;
  ConstantTables tables;
  memory::ModelLayout layout;
  CollectiveTable collectives; // into `layout`
};

} // namespace

FailureOr<LoweredModel> lowerTasks(ModuleOp module, KernelLibrary &library) {
  auto model = Model::get(module);
  auto mesh = ProgramMesh::get(module);
  if (failed(model) || failed(mesh))
    return failure();
  auto found = model->auxiliaryLosses();
  if (failed(found))
    return failure();
  std::vector<AuxiliaryLoss> losses;
  for (const mlir::rota::AuxiliaryLossInfo &loss : *found)
    losses.push_back({loss.name, loss.coefficient, loss.weight});
  return Lowering(*model, std::move(losses), *mesh, library).run();
}

} // namespace rota::lowering

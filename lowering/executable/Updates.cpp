// SPDX-License-Identifier: Apache-2.0
//
// Gives the arguments and results of update functions addresses in the frame.
#include "lowering/executable/Updates.h"

#include "ir/rota/model/Update.h"

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {
namespace {

BufferAddress at(memory::FrameField field, int64_t offset = 0) {
  return {field, offset};
}

ProgramOption optionOf(OptionAttr option) {
  return {option.getName().str(), option.getHelp().str(),
          option.getValue().convertToDouble(),
          option.getLeast().convertToDouble(),
          option.getMost().convertToDouble()};
}

class UpdateLowering {
public:
  UpdateLowering(Program &program, LowerTask lower)
      : program(program), lower(lower) {}

  LogicalResult run(ParamOp param, Parameter &parameter) {
    UpdateFunction update = UpdateFunction::of(param);
    func::FuncOp squares = squaresOf(param);
    if (!update || !squares)
      return success();
    func::FuncOp function = update.getFunction();
    std::vector<int64_t> part =
        partShape(parameter.shape, parameter.optimizerDivision, program.mesh);
    for (func::FuncOp either : {function, squares}) {
      auto type = dyn_cast<RankedTensorType>(either.getArgumentTypes()[0]);
      if (!type || type.getShape() != ArrayRef(part))
        return either.emitOpError("expected the optimizer's part of '")
               << param.getSymName() << "' as argument 0, got "
               << either.getArgumentTypes()[0];
    }
    describeStates(update, parameter);
    FunctionAddresses addresses;
    if (failed(placeArguments(update, parameter, addresses)))
      return failure();
    addresses.results = {at(memory::Parameters)};
    for (unsigned state : update.states())
      addresses.results.push_back(addresses.arguments[state]);
    addresses.results.push_back(at(memory::Gradients));
    if (function.getNumResults() > addresses.results.size())
      addresses.results.push_back(at(memory::Output));
    FunctionAddresses ofSquares;
    ofSquares.arguments = {at(memory::Gradients)};
    ofSquares.results = {at(memory::Output)};
    return success(
        succeeded(assign(parameter.updateTask, function, addresses)) &&
        succeeded(assign(parameter.squareTask, squares, ofSquares)));
  }

private:
  /// States are one block, in the order of the arguments.
  static void describeStates(const UpdateFunction &update,
                             Parameter &parameter) {
    memory::Packer packer;
    for (unsigned number : update.states()) {
      StateAttr state = update.stateOf(number);
      Type type = update.getFunction().getArgumentTypes()[number];
      parameter.states.push_back({state.getName().str(), elementTypeOf(type),
                                  state.getInitial().convertToDouble(),
                                  packer.add(tensorBytes(type))});
    }
    parameter.stateBytes = packer.bytes();
  }

  LogicalResult placeArguments(const UpdateFunction &update,
                               const Parameter &parameter,
                               FunctionAddresses &addresses) {
    func::FuncOp function = update.getFunction();
    size_t states = 0;
    for (unsigned i = 0, end = function.getNumArguments(); i < end; ++i) {
      if (i == UpdateFunction::parameter) {
        addresses.arguments.push_back(at(memory::Parameters));
      } else if (i == UpdateFunction::gradient) {
        addresses.arguments.push_back(at(memory::Gradients));
      } else if (update.stateOf(i)) {
        addresses.arguments.push_back(
            at(memory::Residuals, parameter.states[states++].offset));
      } else if (ScalarAttr attribute = update.scalarOf(i)) {
        auto scalar = numberOf(function, attribute);
        if (failed(scalar))
          return failure();
        addresses.arguments.push_back(at(memory::Data, 4 * *scalar));
      } else {
        return function.emitOpError("expected argument ")
               << i << " to be a state or a scalar";
      }
    }
    return success();
  }

  /// The number of that scalar in the program, equal ones once.
  FailureOr<int64_t> numberOf(func::FuncOp function, ScalarAttr attribute) {
    static_assert(int(Scalar::Kind::Skip) == int(ScalarKind::Skip),
                  "both list the same kinds");
    Scalar scalar{static_cast<Scalar::Kind>(attribute.getKind()), "",
                  attribute.getFactorOrOne()};
    if (StringAttr option = attribute.getOption()) {
      scalar.option = option.str();
      if (llvm::none_of(program.options, [&](const ProgramOption &known) {
            return known.name == scalar.option;
          }))
        return function.emitOpError("expected 'rota.options' of the module to "
                                    "have '")
               << scalar.option << "'";
    }
    auto found = llvm::find(program.scalars, scalar);
    if (found == program.scalars.end())
      found = program.scalars.insert(found, scalar);
    return int64_t(found - program.scalars.begin());
  }

  LogicalResult assign(int &task, func::FuncOp function,
                       const FunctionAddresses &addresses) {
    auto [known, isNew] = tasks.try_emplace(function, -1);
    if (isNew) {
      auto number = lower(function, addresses);
      if (failed(number))
        return failure();
      known->second = *number;
    }
    task = known->second;
    return success();
  }

  Program &program;
  LowerTask lower;
  llvm::DenseMap<Operation *, int> tasks; // by function
};

} // namespace

LogicalResult lowerUpdates(const Model &model, Program &program,
                           LowerTask lower) {
  ModuleOp module = model.module;
  if (auto options =
          RotaDialect::OptionsAttrHelper(module.getContext()).getAttr(module))
    for (auto option : options.getAsRange<OptionAttr>())
      program.options.push_back(optionOf(option));
  SmallVector<ParamOp> params = model.globalParams();
  for (LayerOp kind : model.kinds())
    llvm::append_range(params, Model::params(kind));
  UpdateLowering updates(program, lower);
  for (auto [param, parameter] : llvm::zip_equal(params, program.parameters))
    if (failed(updates.run(param, parameter)))
      return failure();
  return success();
}

} // namespace rota::lowering

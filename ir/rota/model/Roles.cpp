// SPDX-License-Identifier: Apache-2.0
//
// The table of functions, and queries of it.
#include "ir/rota/model/Roles.h"

using namespace mlir;
using namespace mlir::rota;

bool mlir::rota::isActivation(Role role) {
  return role == Role::InputActivation || role == Role::OutputActivation ||
         role == Role::InputCotangent || role == Role::OutputCotangent;
}

bool mlir::rota::isData(Role role) {
  return role == Role::Tokens || role == Role::Targets;
}

bool mlir::rota::isResidual(Role role) {
  return role == Role::Residual || role == Role::CotangentResidual;
}

bool mlir::rota::isVariadic(Role role) {
  return isResidual(role) || role == Role::LossTerm;
}

ArrayRef<Signature> mlir::rota::signatures() {
  using enum ModelPart;
  using enum Role;
  using Kind = FunctionKind;
  static const Signature table[] = {
      {"embed", Embed, Kind::Forward, {Tokens}, {OutputActivation}},
      {"embed_backward", Embed, Kind::Backward, {Tokens, OutputCotangent}, {}},
      {"forward",
       Layer,
       Kind::Forward,
       {InputActivation},
       {OutputActivation, Residual}},
      {"backward",
       Layer,
       Kind::Backward,
       {InputActivation, Residual, OutputCotangent},
       {InputCotangent}},
      {"backward_input",
       Layer,
       Kind::BackwardInput,
       {InputActivation, Residual, OutputCotangent},
       {InputCotangent, CotangentResidual}},
      {"backward_weight",
       Layer,
       Kind::BackwardWeight,
       {InputActivation, Residual, CotangentResidual},
       {}},
      {"loss",
       Loss,
       Kind::Forward,
       {InputActivation, Targets},
       {LossSum, LossWeight, LossTerm}},
      {"loss_weight", Loss, Kind::LossWeight, {Targets}, {LossWeight}},
      {"loss_backward",
       Loss,
       Kind::Backward,
       {InputActivation, Targets},
       {LossSum, LossWeight, LossTerm, InputCotangent}},
      {"loss_backward_input",
       Loss,
       Kind::BackwardInput,
       {InputActivation, Targets},
       {LossSum, LossWeight, LossTerm, InputCotangent, CotangentResidual}},
      {"loss_backward_weight",
       Loss,
       Kind::BackwardWeight,
       {InputActivation, Targets, CotangentResidual},
       {}},
  };
  return table;
}

/// The row of the functions that give a named value of the loss:
/// `logits(activation)`, or with the targets.
static const Signature &probeSignature() {
  static const Signature row = {"",
                                ModelPart::Loss,
                                FunctionKind::Probe,
                                {Role::InputActivation, Role::Targets},
                                {Role::NamedValue}};
  return row;
}

const Signature &mlir::rota::signatureOf(ModelPart part, FunctionKind kind) {
  for (const Signature &row : signatures())
    if (row.part == part && row.kind == kind)
      return row;
  llvm_unreachable("no such function in the table");
}

static bool standsIn(const Signature &row, Operation *scope) {
  return isa_and_nonnull<LayerOp>(scope) == (row.part == ModelPart::Layer);
}

const Signature &mlir::rota::signatureOf(func::FuncOp function) {
  for (const Signature &row : signatures())
    if (row.name == function.getSymName() &&
        standsIn(row, function->getParentOp()))
      return row;
  return probeSignature();
}

func::FuncOp mlir::rota::functionIn(Operation *scope, ModelPart part,
                                    FunctionKind kind) {
  return llvm::dyn_cast_or_null<func::FuncOp>(
      SymbolTable::lookupSymbolIn(scope, signatureOf(part, kind).name));
}

SmallVector<func::FuncOp> mlir::rota::functionsIn(Operation *scope) {
  SmallVector<func::FuncOp> functions;
  for (const Signature &row : signatures())
    if (standsIn(row, scope))
      if (func::FuncOp function = functionIn(scope, row.part, row.kind))
        functions.push_back(function);
  return functions;
}

//===----------------------------------------------------------------------===//
// Ports
//===----------------------------------------------------------------------===//

static constexpr StringRef kSharding =
    RotaDialect::ShardingAttrHelper::getNameStr();
static constexpr StringRef kOffload =
    RotaDialect::OffloadAttrHelper::getNameStr();
static constexpr StringRef kLossTerm =
    RotaDialect::LossTermAttrHelper::getNameStr();

static Attribute attributeOf(const FunctionPort &port, StringRef name) {
  func::FuncOp function = port.function;
  return port.isResult ? function.getResultAttr(port.index, name)
                       : function.getArgAttr(port.index, name);
}

static void setAttribute(const FunctionPort &port, StringRef name,
                         Attribute value) {
  func::FuncOp function = port.function;
  if (port.isResult)
    function.setResultAttr(port.index, name, value);
  else
    function.setArgAttr(port.index, name, value);
}

Type FunctionPort::type() const {
  FunctionType type = func::FuncOp(function).getFunctionType();
  return isResult ? type.getResult(index) : type.getInput(index);
}

Value FunctionPort::value() const {
  Block &body = func::FuncOp(function).getBody().front();
  return isResult ? body.getTerminator()->getOperand(index)
                  : body.getArgument(index);
}

ShardingAttr FunctionPort::sharding() const {
  return llvm::dyn_cast_or_null<ShardingAttr>(attributeOf(*this, kSharding));
}

void FunctionPort::setSharding(ShardingAttr sharding) const {
  setAttribute(*this, kSharding, sharding);
}

bool FunctionPort::isOffloaded() const {
  return bool(attributeOf(*this, kOffload));
}

void FunctionPort::setOffloaded() const {
  setAttribute(*this, kOffload,
               UnitAttr::get(func::FuncOp(function).getContext()));
}

LossTermAttr FunctionPort::lossTerm() const {
  return llvm::dyn_cast_or_null<LossTermAttr>(attributeOf(*this, kLossTerm));
}

void FunctionPort::setLossTerm(LossTermAttr term) const {
  setAttribute(*this, kLossTerm, term);
}

std::string FunctionPort::describe() const {
  return (Twine(isResult ? "result " : "argument ") + Twine(index) + " of '" +
          func::FuncOp(function).getSymName() + "'")
      .str();
}

//===----------------------------------------------------------------------===//
// Roles of one function
//===----------------------------------------------------------------------===//

/// The role of each of `count` values of a function. The last variadic role of
/// `list` has what `count` leaves of them; of the others `countOf` tells the
/// number.
static SmallVector<Role> expand(ArrayRef<Role> list, size_t count,
                                llvm::function_ref<size_t(Role)> countOf) {
  SmallVector<size_t> numbers(list.size(), 1);
  std::optional<size_t> last;
  for (auto [index, role] : llvm::enumerate(list)) {
    if (!isVariadic(role))
      continue;
    if (last)
      numbers[*last] = countOf(list[*last]);
    numbers[index] = 0;
    last = index;
  }
  size_t known = llvm::sum_of(numbers);
  if (last && known < count)
    numbers[*last] = count - known;
  SmallVector<Role> roles;
  for (auto [role, number] : llvm::zip_equal(list, numbers))
    roles.append(number, role);
  roles.resize(count, Role::Unknown);
  return roles;
}

static size_t countMade(func::FuncOp function, Role role);

static SmallVector<Role> resultRolesOf(func::FuncOp function) {
  return expand(signatureOf(function).results, function.getNumResults(),
                [&](Role role) { return countMade(function, role); });
}

/// The number of results of `role` of the function beside `function` that
/// makes them; 0 where there is none.
static size_t countMade(func::FuncOp function, Role role) {
  for (func::FuncOp other : functionsIn(function->getParentOp()))
    if (other != function &&
        llvm::is_contained(signatureOf(other).results, role))
      return llvm::count(resultRolesOf(other), role);
  return 0;
}

FunctionRoles::FunctionRoles(func::FuncOp function)
    : function(function), row(signatureOf(function)),
      argumentRoles(
          expand(row.arguments, function.getNumArguments(),
                 [&](Role role) { return countMade(function, role); })),
      resultRoles(resultRolesOf(function)) {}

static SmallVector<FunctionPort> portsOf(func::FuncOp function, bool isResult,
                                         ArrayRef<Role> roles, Role role) {
  SmallVector<FunctionPort> ports;
  for (auto [index, other] : llvm::enumerate(roles))
    if (other == role)
      ports.push_back({function, isResult, unsigned(index)});
  return ports;
}

SmallVector<FunctionPort> FunctionRoles::arguments(Role role) const {
  return portsOf(function, /*isResult=*/false, argumentRoles, role);
}

SmallVector<FunctionPort> FunctionRoles::results(Role role) const {
  return portsOf(function, /*isResult=*/true, resultRoles, role);
}

FunctionPort FunctionRoles::argument(Role role) const {
  return llvm::getSingleElement(arguments(role));
}

FunctionPort FunctionRoles::result(Role role) const {
  return llvm::getSingleElement(results(role));
}

//===----------------------------------------------------------------------===//
// Between functions
//===----------------------------------------------------------------------===//

SmallVector<FunctionPort> mlir::rota::sourcesIn(Operation *scope, Role role) {
  SmallVector<func::FuncOp> functions = functionsIn(scope);
  for (func::FuncOp function : functions)
    if (llvm::is_contained(signatureOf(function).results, role))
      return FunctionRoles(function).results(role);
  for (func::FuncOp function : functions)
    if (llvm::is_contained(signatureOf(function).arguments, role))
      return FunctionRoles(function).arguments(role);
  return {};
}

/// The roles of the functions in `scope`, sources first.
static SmallVector<Role> rolesIn(Operation *scope) {
  SmallVector<Role> roles;
  for (func::FuncOp function : functionsIn(scope))
    for (ArrayRef<Role> list : {ArrayRef(signatureOf(function).arguments),
                                ArrayRef(signatureOf(function).results)})
      for (Role role : list)
        if (!llvm::is_contained(roles, role))
          roles.push_back(role);
  return roles;
}

SmallVector<RoleEdge> mlir::rota::roleEdgesIn(Operation *scope) {
  SmallVector<RoleEdge> edges;
  for (Role role : rolesIn(scope)) {
    SmallVector<FunctionPort> sources = sourcesIn(scope, role);
    for (func::FuncOp function : functionsIn(scope)) {
      FunctionRoles roles(function);
      for (const auto &ports : {roles.arguments(role), roles.results(role)})
        for (auto [source, user] : llvm::zip(sources, ports))
          if (!(source == user) && source.type() == user.type())
            edges.push_back({role, source, user});
    }
  }
  return edges;
}

SmallVector<RoleEdge> mlir::rota::residualEdgesIn(Operation *scope) {
  SmallVector<RoleEdge> edges = roleEdgesIn(scope);
  llvm::erase_if(edges,
                 [](const RoleEdge &edge) { return !isResidual(edge.role); });
  return edges;
}

LogicalResult mlir::rota::verifyCountsAsBuilt(func::FuncOp function) {
  const Signature &row = signatureOf(function);
  auto count = [](ArrayRef<Role> list) {
    return llvm::count_if(list, [](Role role) { return !isVariadic(role); });
  };
  auto arguments = count(row.arguments), results = count(row.results);
  for (const FunctionPort &port :
       FunctionRoles(function).results(Role::LossTerm))
    results += bool(port.lossTerm());
  if (function.getNumArguments() == arguments &&
      function.getNumResults() == results)
    return success();
  return function.emitOpError("expected ")
         << arguments << (arguments == 1 ? " argument" : " arguments")
         << " and " << results << (results == 1 ? " result" : " results")
         << ", got " << function.getNumArguments() << " and "
         << function.getNumResults();
}

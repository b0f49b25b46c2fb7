// SPDX-License-Identifier: Apache-2.0
//
// Machines as attributes of modules.
#include "ir/rota/cost/MachineReads.h"
#include "ir/rota/sharding/Sharding.h"

#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::rota;
namespace json = llvm::json;

/// Integers stay integers.
static Attribute attributeOf(MLIRContext *context, const json::Value &value) {
  Builder builder(context);
  if (const json::Object *object = value.getAsObject()) {
    SmallVector<NamedAttribute> entries;
    for (const auto &[key, entry] : *object)
      entries.push_back(
          builder.getNamedAttr(StringRef(key), attributeOf(context, entry)));
    return builder.getDictionaryAttr(entries);
  }
  if (const json::Array *array = value.getAsArray())
    return builder.getArrayAttr(
        llvm::map_to_vector(*array, [&](const json::Value &entry) {
          return attributeOf(context, entry);
        }));
  if (auto text = value.getAsString())
    return builder.getStringAttr(*text);
  if (auto integer = value.getAsInteger())
    return builder.getI64IntegerAttr(*integer);
  return builder.getF64FloatAttr(value.getAsNumber().value_or(0));
}

static json::Value jsonOf(Attribute attribute) {
  if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    json::Object object;
    for (NamedAttribute entry : dictionary)
      object[entry.getName().str()] = jsonOf(entry.getValue());
    return object;
  }
  if (auto array = dyn_cast<ArrayAttr>(attribute)) {
    json::Array list;
    for (Attribute entry : array)
      list.push_back(jsonOf(entry));
    return list;
  }
  if (auto text = dyn_cast<StringAttr>(attribute))
    return text.str();
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getInt();
  if (auto real = dyn_cast<FloatAttr>(attribute))
    return real.getValueAsDouble();
  return nullptr;
}

const MachineReads::Read &MachineReads::of(DictionaryAttr dictionary,
                                           int64_t ranks) const {
  std::lock_guard lock(mutex);
  auto [place, isNew] =
      reads.try_emplace({dictionary.getAsOpaquePointer(), ranks});
  Read &read = place->second;
  if (isNew) {
    read.machine = Machine::read(jsonOf(dictionary), read.error);
    if (read.machine)
      read.machine = read.machine->sharedBy(ranks);
  }
  return read;
}

static const MachineReads::Read &read(DictionaryAttr dictionary,
                                      int64_t ranks) {
  auto *dialect = dictionary.getContext()->getLoadedDialect<RotaDialect>();
  return dialect->getRegisteredInterface<MachineReads>()->of(dictionary, ranks);
}

Machine mlir::rota::machineOf(Operation *op, std::optional<int64_t> ranks) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto attribute =
      module ? RotaDialect::MachineAttrHelper(op->getContext()).getAttr(module)
             : DictionaryAttr();
  if (!attribute)
    return {};
  return read(attribute, ranks ? *ranks : meshOf(op).getRanks())
      .machine.value_or(Machine());
}

LogicalResult RotaDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() != getMachineAttrHelper().getName())
    return success();
  auto dictionary = dyn_cast<DictionaryAttr>(attribute.getValue());
  if (!dictionary || !isa<ModuleOp>(op))
    return op->emitOpError("expected '") << attribute.getName().getValue()
                                         << "' to be a dictionary of a module";
  const MachineReads::Read &found = read(dictionary, /*ranks=*/1);
  if (!found.machine)
    return op->emitOpError("'")
           << attribute.getName().getValue() << "': " << found.error;
  return success();
}

void mlir::rota::setMachine(ModuleOp module, const Machine &machine) {
  Machine numbers = machine;
  numbers.description.clear();
  numbers.fitted.clear();
  numbers.sources.clear();
  auto json = llvm::cantFail(json::parse(numbers.write()));
  MLIRContext *context = module.getContext();
  RotaDialect::MachineAttrHelper(context).setAttr(
      module, cast<DictionaryAttr>(attributeOf(context, json)));
}

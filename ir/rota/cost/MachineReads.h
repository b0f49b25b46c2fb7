// SPDX-License-Identifier: Apache-2.0
//
// The machines of a context's modules, read once.
#ifndef ROTA_IR_ROTA_COST_MACHINEREADS_H
#define ROTA_IR_ROTA_COST_MACHINEREADS_H

#include "ir/rota/cost/Machine.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectInterface.h"

#include <map>
#include <mutex>

namespace mlir::rota {

/// Keeps the machine of each dictionary that a module has had. Every function
/// of a pass asks for it, and every verification of a module, while a measured
/// host has some hundred products.
class MachineReads : public DialectInterface::Base<MachineReads> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MachineReads)

  explicit MachineReads(Dialect *dialect) : Base(dialect) {}

  /// A machine, or the mistake in its dictionary.
  struct Read {
    std::optional<Machine> machine;
    std::string error;
  };
  /// What the dictionary says, as one of `ranks` ranks finds it.
  const Read &of(DictionaryAttr dictionary, int64_t ranks) const;

private:
  mutable std::mutex mutex;
  mutable std::map<std::pair<const void *, int64_t>, Read> reads;
};

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_COST_MACHINEREADS_H

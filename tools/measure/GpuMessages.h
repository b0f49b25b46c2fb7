// SPDX-License-Identifier: Apache-2.0
//
// Messages between GPUs, and the network of a machine that has them.
#ifndef ROTA_TOOLS_MEASURE_GPUMESSAGES_H
#define ROTA_TOOLS_MEASURE_GPUMESSAGES_H

#include "ir/rota/cost/Machine.h"
#include "tools/measure/Messages.h"

#include <span>

namespace rota {

/// Between the first `ranks` GPUs of this host, over NCCL, with parts of so
/// many bytes, in some `seconds`. `code` has the kernels of the runtime. Throws
/// InputError where NCCL is missing.
MessageRates timeGpuMessages(std::span<const RotaGpuCode> code, int ranks,
                             int64_t bytes, double seconds);

/// Between ranks that share the emulated GPU.
MessageRates timeSharedMessages(std::span<const RotaGpuCode> code, int ranks,
                                int64_t bytes);

/// Sets the network of a host whose GPUs have such `measured` messages between
/// them, null for one GPU, and that is otherwise like `described`, null where
/// there is none; and its sources, of which `source` begins those of what was
/// measured.
void setGpuNetwork(mlir::rota::Machine &machine,
                   const mlir::rota::NetworkLevel *measured,
                   const mlir::rota::Machine *described,
                   const std::string &source);

} // namespace rota

#endif // ROTA_TOOLS_MEASURE_GPUMESSAGES_H

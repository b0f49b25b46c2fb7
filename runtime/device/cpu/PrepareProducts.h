// SPDX-License-Identifier: Apache-2.0
//
// Compiles products before a run needs them.
#ifndef ROTA_RUNTIME_DEVICE_CPU_PREPAREPRODUCTS_H
#define ROTA_RUNTIME_DEVICE_CPU_PREPAREPRODUCTS_H

#include "runtime/device/Parallel.h"

namespace rota {

/// Device::prepareTasks of the host. Products of rows of experts are not
/// prepared: the heights of their tiles follow from the data.
void prepareProductsOnCpu(RotaContext *context,
                          FunctionRef<void(RotaContext *)> runTasks);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_PREPAREPRODUCTS_H

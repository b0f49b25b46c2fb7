// SPDX-License-Identifier: Apache-2.0
//
// `--schedule auto` under a bound on the bytes of a rank.
#ifndef ROTA_TOOLS_ROTA_CHOOSEACTIVATIONS_H
#define ROTA_TOOLS_ROTA_CHOOSEACTIVATIONS_H

#include "tools/rota/RunOptions.h"

namespace rota {

/// The search for a timeline counts activations, whose bytes are known only
/// once the model is planned. So this bisects `options.activations`, planning
/// the model for each, to the largest number whose plan fits `options.memory`;
/// 0 where no bound is needed. False where no number fits or there is no plan
/// at all, with the reason in `error`.
bool chooseActivations(RunOptions &options, std::string &error);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_CHOOSEACTIVATIONS_H

// SPDX-License-Identifier: Apache-2.0
//
// The options of the files that a run writes about itself.
#ifndef ROTA_RUNTIME_TRAIN_OPTIONS_METRICSOPTIONS_H
#define ROTA_RUNTIME_TRAIN_OPTIONS_METRICSOPTIONS_H

#include "runtime/train/options/OptionRows.h"

namespace rota {

struct MetricsOptions {
  std::string folder;       // runtime/metrics/MetricsFolder.h; empty: none
  double peakFlops = 0.0;   // operations/s of all devices; 0: if it is known
  std::string flightRecord; // empty: by default
};

OptionRows metricsRows(MetricsOptions &options);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIONS_METRICSOPTIONS_H

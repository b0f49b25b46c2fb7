// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/options/MetricsOptions.h"

namespace rota {

OptionRows metricsRows(MetricsOptions &o) {
  const char *group = "Output";
  using namespace commands;
  return {
      {"metrics", group, "DIR",
       "Write each step's numbers, for people, TensorBoard and "
       "`rota report`, to files in this folder",
       train, &o.folder},
      {"peak-flops", group, "X",
       "Operations per second of all devices together, for MFU; 0: of the "
       "data sheet, where the GPU is known",
       train, &o.peakFlops},
      {"flight-record", group, "PATH",
       "File for the last events of the ranks when a run fails "
       "(flight.json in the folder of --metrics, or rota-flight-PID.json in "
       "TMPDIR or /tmp)",
       runs, &o.flightRecord}};
}

} // namespace rota

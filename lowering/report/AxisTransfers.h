// SPDX-License-Identifier: Apache-2.0
//
// The transfers of a step by the axes of the mesh that they serve.
#ifndef ROTA_LOWERING_REPORT_AXISTRANSFERS_H
#define ROTA_LOWERING_REPORT_AXISTRANSFERS_H

#include "lowering/report/Transfers.h"

namespace rota {

/// All transfers over one axis, or over several joined ones, of a rank in a
/// step, each on the stage where it takes longest.
struct AxisTransfers {
  std::string axes;   // "fsdp", "data+context"; "host": to and from host memory
  int64_t bytes = 0;  // sent by one rank
  double seconds = 0; // sum over all transfers
  double exposed = 0; // seconds in which the rank does nothing else

  /// Share of the seconds that work hides.
  double hiddenShare() const { return seconds > 0 ? 1 - exposed / seconds : 1; }
};

/// The sums of `reports`, the most exposed first.
std::vector<AxisTransfers>
sumOverAxes(const std::vector<TransferReport> &reports);

/// The sums as an aligned table; empty without transfers.
std::string describeAxisTransfers(const std::vector<AxisTransfers> &sums);

} // namespace rota

#endif // ROTA_LOWERING_REPORT_AXISTRANSFERS_H

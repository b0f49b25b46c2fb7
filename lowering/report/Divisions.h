// SPDX-License-Identifier: Apache-2.0
//
// The division of a rank's work and memory by each axis of the mesh.
#ifndef ROTA_LOWERING_REPORT_DIVISIONS_H
#define ROTA_LOWERING_REPORT_DIVISIONS_H

#include "lowering/report/Costs.h"

#include <optional>

namespace rota {

/// Quotients of two amounts: that of a rank if the axis had one rank and all
/// other axes divided what they do, and that of a rank as it is. The quotient
/// is the size of the axis where it divides all. Amounts are those of the stage
/// that has most.
struct AxisDivision {
  std::string axis;
  int64_t ranks = 1; // size of the axis
  double work = 1;   // operations of a step
  /// Bytes that layers and loss keep for their backward, at their peak. None
  /// for `stage`, whose size changes the number of microbatches that are kept.
  std::optional<double> activations;
  double parameters = 1; // elements at rest, of copies on several stages too
  double optimizer = 1;  // elements of masters and optimizer states

  /// Whether ranks of the axis do work that an even division would not give
  /// them: more than a tenth of a rank's.
  bool fallsShort() const { return work < 0.9 * static_cast<double>(ranks); }
};

/// The work of a step, without the optimizer's, and the division of all.
struct DivisionReport {
  double operations = 0; // operations of the rank that has most
  double evenShare = 0;  // of one rank if all of them had equal parts of the
                         // work of a mesh of one rank
  std::vector<AxisDivision> axes; // axes of several ranks, in the mesh's order
};

DivisionReport explainDivision(const Program &program,
                               const FunctionCosts &costs);

/// The report as sentences.
std::string describeDivision(const DivisionReport &report);

/// A line for each axis that falls short; empty: there is none.
std::string describeShortfall(const DivisionReport &report);

} // namespace rota

#endif // ROTA_LOWERING_REPORT_DIVISIONS_H

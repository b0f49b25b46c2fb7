// SPDX-License-Identifier: Apache-2.0
//
// What to change where a plan takes more memory than its request has.
#ifndef ROTA_TOOLS_PLANNER_WHATFITS_H
#define ROTA_TOOLS_PLANNER_WHATFITS_H

#include "tools/planner/NamedUses.h"
#include "tools/planner/Request.h"

namespace rota {

/// An option of a run. Without a value it is a switch.
struct Setting {
  std::string option, value;
  bool isDropped = false; // the request has it, and the alternative has not
};

/// The request with other settings.
struct Alternative {
  std::vector<Setting> settings; // those that differ
  int64_t bytes = 0;             // of the rank that needs most
  int64_t hostBytes = 0;         // likewise, in host memory
  double seconds = 0;            // of a step on the assumed machine
  double operations = 0;         // of a step, those computed again included
};

/// A plan over its memory, and what would fit.
struct WhatFits {
  Plan plan;                          // of the request without its bound
  size_t stage = 0;                   // the one whose ranks need most
  std::vector<NamedUse> uses;         // of a rank of that stage
  Alternative asked;                  // the request as it is
  std::vector<Alternative> fitting;   // the shortest step first
  std::optional<Alternative> nearest; // fewest bytes, where none fits
};

/// Plans `request`, whose memory is bounded, without the bound, and then with
/// other settings: each rematerialization policy, policies of each stage
/// (`auto`), schedules 1f1b and circular, divided optimizer states, twice the
/// microbatches, the loss in blocks, fsdp in the place of data. Where none of
/// them fits alone, several are joined. Of policies, those are left out that
/// another one beats or equals in time and in bytes of both memories. In
/// `asked`, a policy that is open counts as `full`.
/// Nothing where the request fits, or where it has no plan, with the reason in
/// `error`.
std::optional<WhatFits> whatFits(const PlanRequest &request,
                                 std::string &error);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_WHATFITS_H

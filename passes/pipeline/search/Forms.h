// SPDX-License-Identifier: Apache-2.0
//
// Searches that choose the chunks of a rank and the form of backwards, too.
#ifndef ROTA_PASSES_PIPELINE_SEARCH_FORMS_H
#define ROTA_PASSES_PIPELINE_SEARCH_FORMS_H

#include "passes/pipeline/search/Search.h"

#include <functional>

namespace rota::pipe {

/// The parts of a timeline's form that a search may choose.
struct OpenForm {
  bool repeats = false;       // one chunk on a rank or two
  bool splitBackward = false; // whole backwards or split ones
};

/// Costs of the actions of a shape; nothing when it is no shape of the model.
/// All shapes are for the same layers.
using CostsOfShape = std::function<std::optional<CostTable>(const Shape &)>;

/// The shortest timeline of the schedule called `name`, which searches, in any
/// of the forms that `open` says. All else is as in `request`, whose costs and
/// bound are `costsOf` a shape and `activations` (wholeActivations; 0: none).
/// The searches of several forms share the work of one. Of forms with one
/// makespan it is the one that holds least, then the simplest. Nothing, and an
/// `error`, when there is no timeline in any form.
std::optional<Timeline> searchForms(std::string_view name,
                                    const ScheduleRequest &request,
                                    OpenForm open, double activations,
                                    const CostsOfShape &costsOf,
                                    SearchReport &report, std::string &error);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SEARCH_FORMS_H

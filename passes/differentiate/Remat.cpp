// SPDX-License-Identifier: Apache-2.0
//
// The table of policies, and the reading of a user's own.
#include "passes/differentiate/Remat.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::rota;

namespace {
/// A policy with a name: the names it saves, or everything.
struct NamedPolicy {
  StringRef name;
  bool everything;
  std::initializer_list<StringRef> saved;
};
} // namespace

static const NamedPolicy namedPolicies[] = {
    {"none", true, {}},
    {"full", false, {}},
    {"minimal",
     false,
     {"query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj", "out_proj",
      "mlpwi_0", "mlpwi_1", "mlpwi", "mlpwo"}},
};

/// Reads one `name=decision` of a table.
static LogicalResult parseEntry(StringRef entry,
                                std::pair<StringRef, RematDecision> &result,
                                function_ref<InFlightDiagnostic()> emitError) {
  auto [name, decision] = entry.split('=');
  result.first = name.trim();
  decision = decision.trim();
  if (result.first.empty())
    return emitError() << "expected 'name=remat|device' in the remat policy, "
                          "got '"
                       << entry << "'";
  if (decision != "remat" && decision != "device")
    return emitError() << "expected 'remat' or 'device' for '" << result.first
                       << "' in the remat policy, got '" << decision << "'";
  result.second =
      decision == "device" ? RematDecision::Device : RematDecision::Recompute;
  if (result.first == layerInputName &&
      result.second == RematDecision::Recompute)
    return emitError() << "expected 'device' for '" << layerInputName
                       << "' in the remat policy, got 'remat': a layer's input "
                          "is always kept";
  return success();
}

FailureOr<RematPolicy>
RematPolicy::parse(StringRef text,
                   function_ref<InFlightDiagnostic()> emitError) {
  RematPolicy policy;
  for (const NamedPolicy &named : namedPolicies)
    if (text == named.name) {
      policy.everything = named.everything;
      for (StringRef name : named.saved)
        policy.decisions.emplace_back(name.str(), RematDecision::Device);
      return policy;
    }
  if (!text.contains('=')) {
    auto diagnostic = emitError() << "expected a remat policy (";
    for (const NamedPolicy &named : namedPolicies)
      diagnostic << "'" << named.name << "', ";
    return diagnostic << "or a table 'name=remat|device,...'), got '" << text
                      << "'";
  }
  policy.isCustom = true;
  for (StringRef entry : llvm::split(text, ',')) {
    std::pair<StringRef, RematDecision> decision;
    if (failed(parseEntry(entry, decision, emitError)))
      return failure();
    auto [name, where] = decision;
    if (policy.find(name))
      return emitError() << "expected one decision for '" << name
                         << "' in the remat policy, got two";
    policy.decisions.emplace_back(name.str(), where);
  }
  return policy;
}

const RematDecision *RematPolicy::find(StringRef name) const {
  for (const auto &[known, decision] : decisions)
    if (known == name)
      return &decision;
  return nullptr;
}

RematDecision RematPolicy::decide(StringRef name) const {
  const RematDecision *decision = find(name);
  return decision ? *decision : RematDecision::Recompute;
}

SmallVector<StringRef> RematPolicy::requiredNames() const {
  SmallVector<StringRef> names;
  if (isCustom)
    for (const auto &[name, decision] : decisions)
      if (name != layerInputName)
        names.push_back(name);
  return names;
}

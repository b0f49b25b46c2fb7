// SPDX-License-Identifier: Apache-2.0
//
// The table of policies, and the reading of a user's own.
#include "passes/differentiate/Remat.h"

#include "runtime/text/Nearest.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::rota;

namespace {
using Names = ArrayRef<StringRef>;

/// A policy with a name: the values that it keeps on the device and on the
/// host; `everything` keeps all of them.
struct NamedPolicy {
  StringRef name;
  bool everything;
  Names device, offload;
};
} // namespace

static constexpr StringRef projections[] = {
    "query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj"};
static constexpr StringRef separateProjections[] = {"query_proj", "key_proj",
                                                    "value_proj", "kv_proj"};
static constexpr StringRef outProjection[] = {"out_proj"};
static constexpr StringRef minimal[] = {
    "query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj",
    "out_proj",   "mlpwi_0",  "mlpwi_1",    "mlpwi",   "mlpwo"};
static constexpr StringRef minimalWithContext[] = {
    "query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj", "out_proj",
    "mlpwi_0",    "mlpwi_1",  "mlpwi",      "mlpwo",   "context"};
static constexpr StringRef attention[] = {
    "query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj", "out_proj"};
static constexpr StringRef attentionWithContext[] = {
    "query_proj", "key_proj", "value_proj", "kv_proj",
    "qkv_proj",   "out_proj", "context"};
static constexpr StringRef attentionWithDown[] = {
    "query_proj", "key_proj", "value_proj", "kv_proj",
    "qkv_proj",   "out_proj", "mlpwo"};

/// From the one that keeps everything to the one that keeps nothing.
static constexpr NamedPolicy namedPolicies[] = {
    {"none", true, {}, {}},
    {"minimal_with_context", false, minimalWithContext, {}},
    {"minimal", false, minimal, {}},
    {"save_dot_with_context_except_mlp", false, attentionWithContext, {}},
    {"save_dot_except_mlpwi", false, attentionWithDown, {}},
    {"save_dot_except_mlp", false, attention, {}},
    {"save_qkv_proj", false, projections, {}},
    {"save_out_proj", false, outProjection, {}},
    {"minimal_offloaded", false, {}, minimal},
    {"qkv_proj_offloaded", false, {}, separateProjections},
    {"full", false, {}, {}},
};

/// The names of values that policies and tables of the field use.
static constexpr StringRef valueNames[] = {"decoder_layer_input",
                                           "query_proj",
                                           "key_proj",
                                           "value_proj",
                                           "kv_proj",
                                           "qkv_proj",
                                           "context",
                                           "out_proj",
                                           "attention_out",
                                           "mlpwi",
                                           "mlpwi_0",
                                           "mlpwi_1",
                                           "mlpwo",
                                           "moe_mlpwi_0",
                                           "moe_mlpwi_1",
                                           "moe_mlpwo",
                                           "query_wa_proj",
                                           "kv_wa_proj",
                                           "mla_q",
                                           "mla_kv"};

static constexpr std::pair<StringRef, RematDecision> decisionNames[] = {
    {"remat", RematDecision::Recompute},
    {"device", RematDecision::Device},
    {"offload", RematDecision::Offload}};

static StringRef textOf(RematDecision decision) {
  return llvm::find_if(
             decisionNames,
             [&](const auto &entry) { return entry.second == decision; })
      ->first;
}

bool mlir::rota::isKnownValueName(StringRef name) {
  return llvm::is_contained(valueNames, name);
}

SmallVector<StringRef> mlir::rota::policyNames() {
  return llvm::map_to_vector(
      namedPolicies, [](const NamedPolicy &named) { return named.name; });
}

std::optional<RematDecision> RematPolicy::decide(StringRef name) const {
  for (const auto &[known, decision] : decisions)
    if (known == name)
      return decision;
  return std::nullopt;
}

void RematPolicy::set(StringRef name, RematDecision decision) {
  llvm::erase_if(decisions, [&](auto &entry) { return entry.first == name; });
  decisions.emplace_back(name.str(), decision);
}

/// Takes over the policy of that name; false when there is none.
bool RematPolicy::readPolicy(StringRef name) {
  for (const NamedPolicy &named : namedPolicies) {
    if (named.name != name)
      continue;
    everything = named.everything;
    for (StringRef saved : named.device)
      set(saved, RematDecision::Device);
    for (StringRef saved : named.offload)
      set(saved, RematDecision::Offload);
    return true;
  }
  return false;
}

/// Reads one `name=decision` of a table that changes the policy `base`, or
/// stands alone when that is empty.
LogicalResult
RematPolicy::readEntry(StringRef entry, StringRef base,
                       function_ref<InFlightDiagnostic()> emitError) {
  auto [name, text] = entry.split('=');
  name = name.trim();
  text = text.trim();
  if (name.empty())
    return emitError() << "expected 'name=remat|device|offload', got '" << entry
                       << "'";
  auto *found = llvm::find_if(
      decisionNames, [&](const auto &entry) { return entry.first == text; });
  if (found == std::end(decisionNames))
    return emitError() << "expected 'remat', 'device' or 'offload' for '"
                       << name << "', got '" << text << "'";
  RematDecision decision = found->second;
  bool isInput = name == layerInputName;
  if (isInput && decision == RematDecision::Recompute)
    return emitError() << "expected 'device' or 'offload' for '" << name
                       << "', got 'remat': a layer's input "
                          "is always kept";
  if (llvm::is_contained(written, name))
    return emitError() << "expected one decision for '" << name << "', got '"
                       << textOf(*decide(name)) << "' and '" << text << "'";
  if (!base.empty() && !isInput && decision == RematDecision::Offload &&
      decide(name).value_or(decideOthers()) == RematDecision::Recompute)
    return emitError() << "expected 'remat' or 'device' for '" << name
                       << "', got 'offload': '" << base
                       << "' rematerializes it, and only what is kept can be "
                          "offloaded";
  set(name, decision);
  written.push_back(name.str());
  return success();
}

FailureOr<RematPolicy>
RematPolicy::parse(StringRef text,
                   function_ref<InFlightDiagnostic()> emitError) {
  RematPolicy policy;
  auto [first, rest] = text.split(',');
  StringRef base = first.trim();
  if (base.contains('=')) {
    base = "";
    rest = text;
  } else if (!policy.readPolicy(base)) {
    auto diagnostic = emitError() << "expected a policy (";
    SmallVector<StringRef> names = policyNames();
    for (StringRef name : names)
      diagnostic << "'" << name << "', ";
    diagnostic << "or a table 'name=remat|device|offload,...'), got '" << base
               << "'";
    diagnostic << ::rota::didYouMean(::rota::nearestName(base, names));
    return diagnostic;
  }
  if (rest.empty())
    return policy;
  for (StringRef entry : llvm::split(rest, ','))
    if (failed(policy.readEntry(entry, base, emitError)))
      return failure();
  return policy;
}

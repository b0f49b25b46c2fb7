// SPDX-License-Identifier: Apache-2.0
//
// The options of the optimizers. Those that are numbers go to the trainer, too.
#include "tools/rota/options/OptimizerRows.h"

#include "passes/optimizer/Groups.h"
#include "passes/optimizer/Optimizers.h"
#include "runtime/text/Text.h"

using namespace rota;
using mlir::rota::OptimizerSpec;

static ProgramOption programOption(const OptimizerSpec::Option &option) {
  return {option.name.str(), option.help.str(), option.value, option.least,
          option.most};
}

std::vector<ProgramOption> rota::ownOptions() {
  std::vector<ProgramOption> own;
  for (const OptimizerSpec *optimizer : mlir::rota::allOptimizers())
    for (const OptimizerSpec::Option &option : optimizer->options)
      if (llvm::none_of(own, [&](const ProgramOption &known) {
            return known.name == option.name;
          }))
        own.push_back(programOption(option));
  return own;
}

std::vector<Option> rota::optimizerRows(RunOptions &o, unsigned commands) {
  const char *group = "Optimizer";
  mlir::rota::BuildUpdatesOptions &updates = o.compiler.shard;
  std::vector<std::string> names;
  for (const OptimizerSpec *optimizer : mlir::rota::allOptimizers())
    names.push_back(optimizer->name.str());
  return {{.name = "optimizer",
           .group = group,
           .value = "NAME",
           .help = "The rule that updates the parameters",
           .commands = commands,
           .variable = &updates.optimizer,
           .choices = names},
          {"state-dtype", group, "TYPE",
           "The type of the optimizer's states; computed in f32", commands,
           Choice(updates.stateDtype)},
          {"nesterov", group, "",
           "Nesterov's form of momentum (sgd; muon has "
           "it unless --nesterov=false)",
           commands, &updates.nesterov},
          {"muon-dtype", group, "TYPE",
           "The type of the operands of muon's products", commands,
           Choice(updates.muonDtype)},
          {"muon-scale", group, "RULE",
           "The factor of muon's steps for a matrix [r, c]: sqrt(max(1, r/c)) "
           "or 0.2*sqrt(max(r, c))",
           commands, Choice(updates.muonScale)},
          {"muon-per-head", group, "",
           "muon takes the projections of attention head by head: query, key "
           "and value by rows, the output's by columns",
           commands, &updates.muonPerHead},
          {"group", group, "TEXT=KEY:X,...",
           "Factors of the parameters with TEXT in their name, of the learning "
           "rate (lr:X) and of the weight decay (decay:X); repeatable, the "
           "first match wins",
           commands, JoinedList{&updates.groups}},
          {"freeze", group, "TEXT,...",
           "Keep the parameters with TEXT in their name, such as "
           "embed_tokens or layers.3., as they are: no gradient, no states, no "
           "update; repeatable",
           commands, JoinedList{&o.compiler.freeze.patterns}}};
}

/// "sgd and muon".
static std::string listOf(llvm::ArrayRef<llvm::StringRef> names) {
  return llvm::join(names, " and ");
}

OptionMistake rota::checkOptimizer(RunOptions &options) {
  mlir::rota::BuildUpdatesOptions &updates = options.compiler.shard;
  const OptimizerSpec &chosen = *mlir::rota::findOptimizer(updates.optimizer);
  auto isOthers = [&](const std::string &name) {
    auto with = mlir::rota::optimizersWith(name);
    return !with.empty() && !llvm::is_contained(with, chosen.name);
  };
  for (const std::string &name : options.given)
    if (isOthers(name))
      return {name, "an option of " + listOf(mlir::rota::optimizersWith(name)) +
                        ", the optimizer is '" + chosen.name.str() + "'"};
  std::vector<ProgramOption> own;
  for (const OptimizerSpec::Option &option : chosen.options) {
    own.push_back(programOption(option));
    for (const ProgramOption &known : options.optimizer.own)
      if (known.name == own.back().name && options.given.contains(known.name))
        own.back().value = known.value;
  }
  options.optimizer.own = own;
  if (!options.given.contains("nesterov"))
    updates.nesterov = chosen.isNesterov;
  auto momentum = llvm::find_if(own, [](const ProgramOption &option) {
    return option.name == mlir::rota::kMomentum;
  });
  if (updates.nesterov && momentum->value == 0.0)
    return {"nesterov", "expected a momentum above 0, got 0"};
  std::string error;
  if (!mlir::rota::ParameterGroups::read(updates.groups, error))
    return {"group", error};
  std::vector<std::string> values;
  for (const ProgramOption &option : own)
    values.push_back(option.name + "=" + numberText(option.value));
  updates.values = llvm::join(values, ",");
  return {};
}

std::string rota::optimizerText(const RunOptions &options) {
  RunOptions values = options;
  std::string text;
  for (const Option &row : optimizerRows(values, ~0u)) {
    auto with = mlir::rota::optimizersWith(row.name);
    std::vector<std::string> texts = valueTexts(row);
    bool isOwn = with.empty() ||
                 llvm::is_contained(with, values.compiler.shard.optimizer);
    if (isOwn && !texts.empty())
      text +=
          (text.empty() ? "" : " ") + row.name + "=" + llvm::join(texts, ",");
  }
  return text;
}

// SPDX-License-Identifier: Apache-2.0
//
// Each axis of a mesh divides the work, the activations and the matrices of
// every model in models/configs. ROTA_DIVISION_TABLE=1 prints the table of
// passes/shard/README.md.
#include "lowering/report/Divisions.h"
#include "tools/compiler/Compile.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <sstream>

using namespace rota;

namespace {

/// Values that are still below the bounds, by the name of the check; 0 for a
/// matrix that stays whole. A value may not fall further; a line whose value
/// has reached its bound must go.
const std::map<std::string, double> kBelow = {};

/// The rule by which `tensor` also divides what lies between layers.
constexpr const char *kTensorLength =
    "activation/length=context+sequence+tensor";

/// Tensors that `tensor` and `sequence` may leave whole, by the ends of their
/// names.
const std::vector<std::string> kWholeMatrices = {
    "gate.weight",               // routers
    "router.weight",             // likewise
    "q_a_proj.weight",           // narrow products of latent attention
    "kv_a_proj_with_mqa.weight", // likewise
    "_bias",                     // vectors, one for each expert
};

struct ModelConfig {
  std::string name;
  bool hasExperts = false, hasLatentAttention = false;
  bool dividesHeads = true; // over four ranks
  int64_t length = 4096;    // tokens in a sequence

  /// The smallest part of its size by which an axis should divide the work.
  double bound() const {
    return hasExperts || hasLatentAttention ? 3.75 / 4 : 3.9 / 4;
  }
};

std::vector<ModelConfig> modelConfigs() {
  std::vector<ModelConfig> configs;
  for (const auto &entry :
       std::filesystem::directory_iterator(ROTA_SOURCE_DIR "/models/configs")) {
    // The layers of `simple` have no dimension that tensor divides.
    if (!entry.is_directory() || entry.path().filename() == "simple")
      continue;
    std::ifstream file(entry.path() / "config.json");
    std::stringstream text;
    text << file.rdbuf();
    auto has = [&](const char *key) {
      return text.str().find(key) != std::string::npos;
    };
    ModelConfig &config = configs.emplace_back();
    config.name = entry.path().filename().string();
    config.hasExperts = has("experts_per_tok");
    config.hasLatentAttention = has("kv_lora_rank");
    config.dividesHeads = config.name != "tiny-moe"; // which has three
    if (has("n_positions")) // learned positions, of which there are no more
      config.length = 1024;
  }
  std::sort(configs.begin(), configs.end(),
            [](const auto &a, const auto &b) { return a.name < b.name; });
  return configs;
}

bool dividesMatrices(std::string_view axis) {
  return axis == "tensor" || axis == "sequence";
}

using Mesh = std::vector<MeshAxis>;

std::string textOf(const Mesh &mesh) {
  std::string text;
  for (const MeshAxis &axis : mesh)
    text +=
        (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  return text;
}

struct Division {
  Program program;
  DivisionReport report;

  /// By how much all axes together divide the work.
  double together() const {
    return report.evenShare * static_cast<double>(rankCount(program)) /
           report.operations;
  }
};

/// The plan of four sequences in one microbatch. Attention over `context` takes
/// the exchange that `auto` chooses.
Division divide(const ModelConfig &config, const Mesh &mesh,
                const std::string &rules = "") {
  CompilerOptions options;
  options.model = ROTA_SOURCE_DIR "/models/configs/" + config.name;
  options.build.sequences = 4;
  options.build.sequenceLength = config.length;
  for (const MeshAxis &axis : mesh) {
    if (axis.name == "expert")
      options.build.experts.ranks = axis.size;
    if (axis.name == "context")
      options.build.experts.parts = axis.size;
  }
  options.shard.meshText = textOf(mesh);
  options.shard.rules = rules;
  options.shard.optimizer = "adamw";
  options.shard.exchange = mlir::rota::ContextExchange::Auto;
  mlir::DialectRegistry registry;
  mlir::rota::registerModelDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto model = mlir::rota::buildModel(context, options.model, options.build);
  Plan plan;
  if (failed(model) || estimateModel(*model, options, plan) != kExitSuccess) {
    ADD_FAILURE() << config.name << " has no plan on " << textOf(mesh);
    return {};
  }
  return {plan.program, explainDivision(plan.program, plan.costs)};
}

class DivisionTest : public ::testing::Test {
protected:
  /// Expects a value of at least `bound`, or what the list says.
  void expectAtLeast(double bound, double value, const std::string &name) {
    auto below = kBelow.find(name);
    if (below == kBelow.end()) {
      EXPECT_GE(value, bound) << name;
      return;
    }
    EXPECT_GE(value, below->second) << name << ": below its line in kBelow";
    if (value < bound)
      found.insert(name);
  }
  std::string checkAxis(const ModelConfig &config, const std::string &axis);
  std::string checkModel(const ModelConfig &config);

  std::set<std::string> found; // values below their bounds
};

/// The matrices that `axis` leaves whole, without those that may be. The input
/// of `eh_proj` has a rank's part of the tokens along `sequence`.
std::vector<std::string> wholeMatrices(const Program &program,
                                       const std::string &axis) {
  auto divides = [&](const std::vector<int> &axes) {
    return std::any_of(axes.begin(), axes.end(), [&](int number) {
      return program.mesh[number].name == axis;
    });
  };
  std::vector<std::string> names;
  for (const Parameter &parameter : program.parameters) {
    const auto &division = parameter.computeDivision;
    auto hasEnd = [&](const std::string &end) {
      return parameter.name.ends_with(end);
    };
    bool mayBeWhole =
        std::any_of(kWholeMatrices.begin(), kWholeMatrices.end(), hasEnd) ||
        (axis == "sequence" && hasEnd("eh_proj.weight"));
    if (parameter.shape.size() > 1 && !mayBeWhole &&
        std::none_of(division.begin(), division.end(), divides))
      names.push_back(parameter.name);
  }
  return names;
}

/// A mesh of one axis: its work, activations and, where the axis divides
/// matrices, parameters. Returns the columns of the table.
std::string DivisionTest::checkAxis(const ModelConfig &config,
                                    const std::string &axis) {
  Division division = divide(config, {{axis, 4}});
  if (division.report.axes.size() != 1)
    return dividesMatrices(axis) ? " | | |" : " | |";
  const AxisDivision &divided = division.report.axes.front();
  double bound = 4 * config.bound();
  std::string name = config.name + " " + axis;
  expectAtLeast(bound, divided.work, name + " work");
  // Activations between layers are whole along `tensor`, unless a rule divides
  // their length.
  AxisDivision ofLength = divided;
  if (axis == "tensor")
    if (Division byRule = divide(config, {{axis, 4}}, kTensorLength);
        byRule.report.axes.size() == 1)
      ofLength = byRule.report.axes.front();
  expectAtLeast(bound, ofLength.work, name + " work");
  expectAtLeast(bound, ofLength.activations.value_or(0), name + " activations");
  if (!dividesMatrices(axis))
    return fmt::format(" {:.2f} | {:.2f} |", divided.work,
                       divided.activations.value_or(0));
  expectAtLeast(bound, divided.parameters, name + " parameters");
  for (const std::string &matrix : wholeMatrices(division.program, axis))
    expectAtLeast(1, 0, name + " " + matrix);
  return fmt::format(" {:.2f} | {:.2f} | {:.2f} |", divided.work,
                     divided.parameters, divided.activations.value_or(0));
}

/// All meshes. Returns a row of the table.
std::string DivisionTest::checkModel(const ModelConfig &config) {
  std::string row = fmt::format("| `{}` |", config.name);
  for (const char *axis : {"tensor", "sequence"})
    row += config.dividesHeads ? checkAxis(config, axis) : " | | |";
  row += checkAxis(config, "context");
  if (!config.hasExperts)
    return row + " | | |\n";
  row += checkAxis(config, "expert");
  Mesh mesh = config.dividesHeads
                  ? Mesh{{"expert", 4}, {"context", 2}, {"sequence", 2}}
                  : Mesh{{"expert", 4}, {"context", 4}};
  double work = divide(config, mesh).together();
  expectAtLeast(15, work, config.name + " 16 ranks work");
  return row + fmt::format(" {:.2f} |\n", work);
}

TEST_F(DivisionTest, AxesDivideEveryModel) {
  std::string table = "| |", rule = "|---|---|";
  for (const char *axis : {"tensor", "sequence", "context", "expert"}) {
    table += fmt::format(" `{}`: work |{} activations |", axis,
                         dividesMatrices(axis) ? " parameters |" : "");
    rule += dividesMatrices(axis) ? "---|---|---|" : "---|---|";
  }
  table += " 16 ranks: work |\n" + rule + "\n";
  for (const ModelConfig &config : modelConfigs())
    table += checkModel(config);
  for (const auto &[name, value] : kBelow)
    EXPECT_TRUE(found.contains(name)) << name << ": its line in kBelow may go";
  if (std::getenv("ROTA_DIVISION_TABLE"))
    fmt::print("{}", table);
}

} // namespace

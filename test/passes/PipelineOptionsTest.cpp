// SPDX-License-Identifier: Apache-2.0
//
// The options of a named pipeline are those of its passes, with the same
// defaults.
#include "passes/differentiate/Passes.h"
#include "passes/pipeline/Passes.h"
#include "passes/shard/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include "gtest/gtest.h"

#include <regex>

using namespace mlir;

namespace {

/// The passes of `entry` with `options` as text, in order; none where it does
/// not take them.
std::vector<std::string> passesOf(const PassRegistryEntry *entry,
                                  StringRef options) {
  OpPassManager manager(ModuleOp::getOperationName());
  std::vector<std::string> texts;
  auto fail = [](const Twine &) { return failure(); };
  if (!entry || failed(entry->addToPipeline(manager, options, fail)))
    return texts;
  for (Pass &pass : manager.getPasses()) {
    llvm::raw_string_ostream stream(texts.emplace_back());
    pass.printAsTextualPipeline(stream);
  }
  return texts;
}

/// The options of a pass, as its help lists them.
std::vector<std::string> optionsOf(const PassInfo &pass) {
  testing::internal::CaptureStdout();
  pass.printHelpStr(/*indent=*/2, /*descIndent=*/80);
  llvm::outs().flush();
  std::string help = testing::internal::GetCapturedStdout();
  std::regex option("\n *--([a-z-]+)");
  std::vector<std::string> names;
  for (std::sregex_iterator it(help.begin(), help.end(), option), end;
       it != end; ++it)
    names.push_back((*it)[1]);
  return names;
}

/// A setting of `option` that changes the pass; empty: none was found.
std::string changeOf(const PassInfo &pass, const std::string &option) {
  std::vector<std::string> before = passesOf(&pass, "");
  testing::internal::CaptureStderr(); // messages about wrong values
  std::string change;
  for (const char *value : {"true", "7", "bf16", "match-rms-adamw", "explicit",
                            "ring", "once", "balanced", "v", "text"}) {
    std::string setting = option + "=" + value;
    std::vector<std::string> after = passesOf(&pass, setting);
    if (change.empty() && !after.empty() && after != before)
      change = setting;
  }
  llvm::errs().flush();
  testing::internal::GetCapturedStderr();
  return change;
}

class PipelineOptions : public testing::TestWithParam<const char *> {
protected:
  static void SetUpTestSuite() {
    mlir::rota::registerDifferentiatePasses();
    mlir::rota::registerOptimizerPasses();
    mlir::rota::registerShardPasses();
    mlir::pipe::registerPipelinePasses();
  }

  const PassPipelineInfo *pipeline = PassPipelineInfo::lookup(GetParam());
};

TEST_P(PipelineOptions, AreThoseOfItsPasses) {
  int count = 0;
  for (StringRef text : passesOf(pipeline, "")) {
    const PassInfo *pass = PassInfo::lookup(text.split('{').first);
    // Passes of MLIR are not registered here. The pipeline demands
    // communication, whatever the default is.
    if (!pass || text == "verify-timeline{communication=true}")
      continue;
    SCOPED_TRACE(text.str());
    EXPECT_EQ(passesOf(pass, "").front(), text) << "another default";
    for (const std::string &option : optionsOf(*pass)) {
      ++count;
      std::string change = changeOf(*pass, option);
      EXPECT_FALSE(change.empty()) << option << ": no value changes the pass";
      EXPECT_TRUE(llvm::is_contained(passesOf(pipeline, change),
                                     passesOf(pass, change).front()))
          << change;
    }
  }
  EXPECT_GE(count, 3);
}

TEST_P(PipelineOptions, AreNoOthers) {
  EXPECT_FALSE(passesOf(pipeline, "").empty());
  EXPECT_TRUE(passesOf(pipeline, "other=1").empty());
}

INSTANTIATE_TEST_SUITE_P(, PipelineOptions,
                         testing::Values("schedule-layers", "shard",
                                         "differentiate-pipeline",
                                         "complete-timeline"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// The files of machines, and what the reader says of wrong ones.
#include "tools/planner/Machines.h"
#include "llvm/Support/JSON.h"

#include "gtest/gtest.h"

#include <fstream>

using namespace rota;
using mlir::rota::Machine;
using mlir::rota::MachineNumber;

namespace {

/// A small machine of which each test changes one place.
constexpr const char *kText = R"({
 "name": "small", "description": "two devices a node", "device": "cuda",
 "units": 4,
 "types": {"bf16": {"flops_per_second": 4e12,
                    "products": [{"batch": 1, "m": 8, "n": 16, "k": 32,
                                  "flops_per_second": 9e8}],
                    "weight_gradients": [{"batch": 1, "m": 16, "n": 8, "k": 64,
                                          "flops_per_second": 7e8}]},
           "f32": {"flops_per_second": 1e12,
                   "attention": {"forward_flops_per_second": 3e11,
                                 "backward_flops_per_second": 2e11,
                                 "forward_keys": 20, "backward_keys": 30},
                   "row_flops_per_second": 5e10,
                   "rows": {"elements_per_second": 2e10,
                            "special_functions_per_second": 1e10},
                   "grouped_slower": 1.5}},
 "tiles": [{"m": 64, "n": 128, "efficiency": 0.9}],
 "product_efficiency": 0.8, "depth": 64,
 "attention": {"forward": 0.5, "backward": 0.4},
 "row_flops_per_second": 1e11, "launch_seconds": 2e-6,
 "memory": {"bytes": 8e9, "bytes_per_second": 1e12, "efficiency": 0.75,
            "copied_bytes_per_second": 4e11,
            "cache": {"bytes": 1e6, "bytes_per_second": 3e12}},
 "host": {"bytes_per_second": 2e10, "latency_seconds": 1e-5},
 "network": [{"name": "links", "devices": 2, "bytes_per_second": 5e10,
              "latency_seconds": 3e-6, "efficiency": 0.8, "slows_work": 0.1},
             {"name": "rack", "devices": 8, "bytes_per_second": 3e10,
              "latency_seconds": 5e-6, "efficiency": 0.8, "slows_work": 0.1},
             {"name": "cables", "devices": 0, "bytes_per_second": 1e10,
              "latency_seconds": 9e-6, "efficiency": 0.9, "slows_work": 0}],
 "fitted": ["product_efficiency"],
 "sources": {"units": "a", "types": "b", "types.f32": "c", "tiles": "d",
             "product_efficiency": "e", "depth": "f", "attention": "g",
             "row_flops_per_second": "h", "launch_seconds": "i",
             "memory": "j", "host": "k", "network": "l",
             "network[0].latency_seconds": "m"}
})";

std::optional<Machine> readMachine(const std::string &text,
                                   std::string &error) {
  auto json = llvm::json::parse(text);
  if (!json) {
    error = toString(json.takeError());
    return std::nullopt;
  }
  auto machine = Machine::read(*json, error);
  if (machine)
    error = machine->checkSources();
  return error.empty() ? machine : std::nullopt;
}

/// The error of the small machine with `to` in the place of `from`.
std::string errorOf(const std::string &from, const std::string &to) {
  std::string text = kText, error;
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  text.replace(at, from.size(), to);
  EXPECT_FALSE(readMachine(text, error)) << from << " -> " << to;
  return error;
}

TEST(Machines, ReadsEveryNumber) {
  std::string error;
  auto machine = readMachine(kText, error);
  ASSERT_TRUE(machine) << error;
  EXPECT_EQ(machine->name, "small");
  EXPECT_EQ(machine->cores, 0);
  EXPECT_EQ(machine->types.at("bf16").products.at(0).size.k, 32);
  EXPECT_EQ(machine->types.at("bf16").weightGradients.at(0).size.k, 64);
  EXPECT_EQ(machine->tiles.at(0).n, 128);
  EXPECT_EQ(machine->attentionBackward, 0.4);
  EXPECT_EQ(machine->memoryBytes, 8e9);
  EXPECT_EQ(machine->network.at(1).devices, 8);
  EXPECT_EQ(machine->network.at(2).latency, 9e-6);
  EXPECT_EQ(machine->sourceOf("types.f32.flops_per_second"), "c");
  EXPECT_EQ(machine->sourceOf("types.bf16.products[0].m"), "b");
  EXPECT_EQ(machine->sourceOf("network[0].latency_seconds"), "m");
  EXPECT_EQ(machine->sourceOf("network[2].latency_seconds"), "l");
}

TEST(Machines, RatesOfATypeWin) {
  using mlir::rota::WorkForm;
  std::string error;
  auto machine = readMachine(kText, error);
  ASSERT_TRUE(machine) << error;
  mlir::MLIRContext context;
  auto f32 = mlir::Float32Type::get(&context);
  auto bf16 = mlir::BFloat16Type::get(&context);
  EXPECT_EQ(machine->rateOf(WorkForm::Attention, f32), 3e11);
  EXPECT_EQ(machine->rateOf(WorkForm::AttentionGradient, f32), 2e11);
  EXPECT_EQ(machine->rateOf(WorkForm::Rows, f32), 5e10);
  EXPECT_EQ(machine->rateOf(WorkForm::Attention, bf16), 4e12 * 0.5);
  EXPECT_EQ(machine->rateOf(WorkForm::AttentionGradient, bf16), 4e12 * 0.4);
  EXPECT_EQ(machine->rateOf(WorkForm::Rows, bf16), 1e11);
  EXPECT_EQ(machine->types.at("f32").elementsPerSecond, 2e10);
  EXPECT_EQ(machine->types.at("f32").specialFunctionsPerSecond, 1e10);
  EXPECT_EQ(machine->reachedMemory(1e6), 3e12);
  EXPECT_EQ(machine->reachedMemory(2e6), 1e12 * 0.75);
}

TEST(Machines, WritesWhatItReads) {
  std::string error;
  auto machine = readMachine(kText, error);
  ASSERT_TRUE(machine) << error;
  std::string text = machine->write();
  auto again = readMachine(text, error);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(again->write(), text);
  std::vector<MachineNumber> numbers = machine->numbers();
  EXPECT_EQ(numbers.size(), again->numbers().size());
  EXPECT_EQ(numbers.front().path, "units");
  EXPECT_EQ(numbers.front().value, 4);
}

TEST(Machines, NamesPathValueAndRule) {
  EXPECT_EQ(errorOf("\"flops_per_second\": 4e12", "\"flops_per_second\": 989"),
            "'types.bf16.flops_per_second': expected FLOP/s, at least 1e+09, "
            "got 989");
  EXPECT_EQ(errorOf("\"bytes_per_second\": 1e12", "\"bytes_per_second\": 3350"),
            "'memory.bytes_per_second': expected bytes a second, at least "
            "1e+06, got 3350");
  EXPECT_EQ(errorOf("\"bytes\": 8e9", "\"bytes\": 80"),
            "'memory.bytes': expected bytes, at least 1e+08, got 80");
  EXPECT_EQ(errorOf("\"latency_seconds\": 9e-6", "\"latency_seconds\": 5"),
            "'network[2].latency_seconds': expected seconds, at most 0.999, "
            "got 5");
  EXPECT_EQ(errorOf("\"efficiency\": 0.75", "\"efficiency\": 75"),
            "'memory.efficiency': expected a share, at most 1, got 75");
  EXPECT_EQ(errorOf("\"units\": 4", "\"units\": -4"),
            "'units': expected a number of units, at least 1, got -4");
  EXPECT_EQ(errorOf("\"m\": 64", "\"m\": 64.5"),
            "'tiles[0].m': expected a whole number of elements, got 64.5");
  EXPECT_EQ(errorOf("\"depth\": 64", "\"depth\": 1e999"),
            "'depth': expected a number of elements, got a number that is not "
            "finite");
  EXPECT_EQ(errorOf("\"depth\": 64", "\"depth\": \"64\""),
            "'depth': expected a number of elements, got \"64\"");
}

TEST(Machines, NamesKeysThatAreMissingOrUnknown) {
  EXPECT_EQ(errorOf("\"depth\": 64,", ""), "'depth': is missing");
  EXPECT_EQ(errorOf("\"bytes\": 8e9, ", ""), "'memory.bytes': is missing");
  EXPECT_EQ(errorOf("\"copied_bytes_per_second\"", "\"copied_bytes_a_second\""),
            "'memory.copied_bytes_per_second': is missing; did you mean "
            "'copied_bytes_a_second'?");
  EXPECT_EQ(errorOf("\"depth\": 64,", "\"depth\": 64, \"dept\": 1,"),
            "'dept': unknown key; did you mean 'depth'?");
  EXPECT_EQ(errorOf("\"forward\": 0.5", "\"forward\": 0.5, \"unit\": 1"),
            "'attention.unit': unknown key");
  EXPECT_EQ(errorOf("\"f32\": {", "\"fp32\": {"),
            "'types.fp32': unknown key; did you mean 'f32'?");
  EXPECT_EQ(errorOf("\"cuda\"", "\"gpu\""),
            "'device': expected one of any, cpu, cuda, hip, tpu, got 'gpu'");
  EXPECT_EQ(errorOf("\"attention\": {\"forward\": 0.5, \"backward\": 0.4}",
                    "\"attention\": 0.5"),
            "'attention': expected an object, got 0.5");
  EXPECT_EQ(errorOf("[{\"m\": 64, \"n\": 128, \"efficiency\": 0.9}]", "[]"),
            "'tiles': expected at least one element");
}

TEST(Machines, ChecksLevelsOfTheNetwork) {
  EXPECT_EQ(errorOf("\"devices\": 8", "\"devices\": 7"),
            "'network[1].devices': expected a multiple of 2, and more, got 7");
  EXPECT_EQ(errorOf("\"devices\": 8", "\"devices\": 2"),
            "'network[1].devices': expected a multiple of 2, and more, got 2");
  EXPECT_EQ(errorOf("\"devices\": 0", "\"devices\": 16"),
            "'network[2].devices': expected 0, any number, of the last level, "
            "got 16");
}

TEST(Machines, ChecksSourcesAndFits) {
  EXPECT_EQ(errorOf("\"depth\": \"f\", ", ""),
            "'depth': expected its source in 'sources', by 'depth' or what "
            "contains it");
  EXPECT_EQ(errorOf("\"host\": \"k\"", "\"host\": \" \""),
            "'sources.host': expected a text, got \" \"");
  EXPECT_EQ(errorOf("\"memory\": \"j\"", "\"memory\": \"j\", \"mem\": \"x\""),
            "'sources': expected the path of a number, or of what contains "
            "numbers, got 'mem'");
  EXPECT_EQ(errorOf("[\"product_efficiency\"]",
                    "[\"depth\", \"units\", \"attention.forward\", "
                    "\"attention.backward\"]"),
            "'fitted': expected at most 3 numbers, got 4");
  EXPECT_EQ(errorOf("[\"product_efficiency\"]", "[\"attention.forwards\"]"),
            "'fitted': expected the path of a number, got "
            "'attention.forwards'; did you mean 'attention.forward'?");
}

TEST(Machines, ShippedFilesAreRight) {
  std::vector<std::string> names = machineNames();
  EXPECT_TRUE(llvm::is_contained(names, "a100-sxm-80gb"));
  EXPECT_EQ(names.back(), kGenericMachine);
  for (const std::string &name : names) {
    std::string error;
    auto found = findMachine(name, error);
    ASSERT_TRUE(found) << name << ": " << error;
    EXPECT_EQ(found->machine.name, name);
    // What a plan keeps of it in its module.
    EXPECT_TRUE(readMachine(found->machine.write(), error)) << name << error;
    EXPECT_FALSE(found->text.empty());
    EXPECT_FALSE(found->machine.description.empty());
    for (const MachineNumber &number : found->machine.numbers())
      EXPECT_FALSE(found->machine.sourceOf(number.path).empty())
          << name << ": " << number.path;
  }
}

TEST(Machines, NamesTheNearestMachine) {
  std::string error;
  EXPECT_FALSE(findMachine("h100", error));
  EXPECT_NE(error.find("one of a100-sxm-"), error.npos) << error;
  EXPECT_NE(error.find("got 'h100'; did you mean 'h100-sxm-80gb'?"), error.npos)
      << error;
  EXPECT_FALSE(findMachine("a100-smx-80gb", error));
  EXPECT_NE(error.find("did you mean 'a100-sxm-80gb'?"), error.npos) << error;
  EXPECT_FALSE(findMachine("mainframe", error));
  EXPECT_EQ(error.find("did you mean"), error.npos) << error;
}

TEST(Machines, NamesTheFileOfAMistake) {
  std::string path = testing::TempDir() + "machine.json", error;
  auto write = [&](const std::string &text) { std::ofstream(path) << text; };
  write(kText);
  auto found = findMachine(path, error);
  ASSERT_TRUE(found) << error;
  EXPECT_EQ(found->text, kText);
  write("{\n \"name\": \"x\",\n \"name\": \"y\"}");
  EXPECT_FALSE(findMachine(path, error));
  EXPECT_EQ(error, path + ":3:2: key 'name' stands twice in one object");
  write("{\"name\": \"x\"}");
  EXPECT_FALSE(findMachine(path, error));
  EXPECT_EQ(error, path + ": 'device': is missing");
  EXPECT_FALSE(findMachine(testing::TempDir(), error));
  EXPECT_NE(error.find("expected a regular file"), error.npos) << error;
  EXPECT_FALSE(findMachine("nowhere.json", error));
  EXPECT_NE(error.find("nowhere.json: cannot read the file"), error.npos)
      << error;
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// A run of the trainer's command line on a program of LineModel.h.
#ifndef ROTA_TEST_RUNTIME_TRAINERRUN_H
#define ROTA_TEST_RUNTIME_TRAINERRUN_H

#include "runtime/train/Train.h"
#include "test/runtime/LineModel.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace rota::test {

struct Outcome {
  int code;
  std::string out, err;

  /// The JSON lines of an event.
  std::vector<nlohmann::json> events(const std::string &name) const {
    std::vector<nlohmann::json> found;
    std::stringstream stream(out);
    for (std::string line; std::getline(stream, line);)
      if (nlohmann::json value = nlohmann::json::parse(line);
          value["event"] == name)
        found.push_back(value);
    return found;
  }
};

inline Outcome runWith(const Program &program,
                       std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "trainer");
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  std::string text = toBytes(program);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code =
      runTrainer(static_cast<int>(argv.size()), argv.data(), text.data(),
                 static_cast<int64_t>(text.size()), lineTasks, lineKernels);
  std::fflush(stdout);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

inline Outcome run(std::vector<std::string> arguments) {
  return runWith(makeLine(2, 2), std::move(arguments));
}

/// A program that reads tokens; it is never run.
inline Program tokenProgram() {
  Program program = makeLine(1, 1);
  program.vocabulary = program.classes = 256;
  program.input = program.target = {ElementType::I32, {1, 8}};
  return program;
}

inline std::vector<float> readTensor(const SafetensorsFile &file,
                                     const char *name) {
  const TensorView &view = file.tensors().at(name);
  std::vector<float> values(view.elements());
  readFloats(view, 0, view.elements(), values.data());
  return values;
}

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_TRAINERRUN_H

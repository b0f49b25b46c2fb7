// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/StepScalars.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace rota {

/// In f64, so that what is near 0 or 1 is not lost before it is rounded.
static double valueOf(const Scalar &scalar, double option, int64_t step) {
  switch (scalar.kind) {
  case Scalar::Kind::Complement:
    return 1.0 - option;
  case Scalar::Kind::Correction:
    return -std::expm1(static_cast<double>(step) * std::log(option));
  default:
    return option;
  }
}

std::vector<float> StepScalars::of(int64_t t, double learningRate) const {
  const Program &program = rank.program();
  std::map<std::string, double> values;
  for (const auto *list : {&program.options, &std::as_const(options.own)})
    for (const ProgramOption &option : *list)
      values[option.name] = option.value;
  std::vector<float> scalars;
  for (const Scalar &scalar : program.scalars)
    scalars.push_back(static_cast<float>(
        scalar.factor * (scalar.kind == Scalar::Kind::LearningRate
                             ? learningRate
                             : valueOf(scalar, values[scalar.option], t))));
  return scalars;
}

void StepScalars::write(std::array<int64_t, 2> numbers,
                        double learningRate) const {
  std::vector<float> scalars;
  for (int64_t t : numbers) {
    std::vector<float> version = of(t, learningRate);
    scalars.insert(scalars.end(), version.begin(), version.end());
  }
  rank.device().write(scalars.data(), rank.runtimeAt(rank.places().scalars),
                      static_cast<int64_t>(4 * scalars.size()));
}

void StepScalars::place() const {
  rank.device().copy(rank.context(), rank.runtimeAt(rank.places().scalars),
                     rank.at(rank.stage().step.scalars),
                     static_cast<int64_t>(4 * rank.program().scalars.size()));
}

float *StepScalars::gradientScale() const {
  const std::vector<Scalar> &scalars = rank.program().scalars;
  auto scale =
      std::find_if(scalars.begin(), scalars.end(), [](const Scalar &s) {
        return s.kind == Scalar::Kind::GradientScale;
      });
  if (scale == scalars.end())
    return static_cast<float *>(
        rank.runtimeAt(rank.places().result + 8 * kScaleResult));
  return static_cast<float *>(
      rank.at(rank.stage().step.scalars + 4 * (scale - scalars.begin())));
}

} // namespace rota

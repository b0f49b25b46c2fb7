// SPDX-License-Identifier: Apache-2.0
//
// Sources of a step's inputs and targets. The sequences of a split are numbered
// 0, 1, ... through all batches; each is a function of seed and number. It
// depends neither on the schedule nor on the split into microbatches.
#ifndef ROTA_RUNTIME_DATA_BATCHES_H
#define ROTA_RUNTIME_DATA_BATCHES_H

#include "runtime/checkpoint/Safetensors.h"
#include "runtime/data/SequenceSource.h"
#include "runtime/program/Part.h"
#include "runtime/random/Philox.h"

#include <memory>

namespace rota {

/// The place for a rank's part of a microbatch.
struct Destination {
  Part part;             // part of the form's whole shape
  char *place = nullptr; // null: this rank does not read the data
};

/// A source of batches for all ranks of a process. Any thread may call it.
class Batches {
public:
  virtual ~Batches() = default;
  /// Writes the parts of inputs and targets of the microbatch whose first
  /// sequence has the number `first`. A batch of a validation has the numbers
  /// of whole runs of the timeline; those after its last sequence do not
  /// count.
  virtual void fill(Split split, int64_t first, const Destination &input,
                    const Destination &target) const = 0;
  virtual bool hasValidation() const = 0;
  /// One line for people: "18 MB in 2 files, 0.9 MB of it for validation".
  virtual std::string describe() const = 0;
};

/// Inputs and targets of the standard normal distribution, for models whose
/// inputs are not tokens.
class NormalBatches : public Batches {
public:
  NormalBatches(const Program &program, uint64_t seed)
      : program(program), seed(seed) {}
  void fill(Split split, int64_t first, const Destination &input,
            const Destination &target) const override;
  bool hasValidation() const override { return true; }
  std::string describe() const override;

private:
  const Program &program;
  uint64_t seed;
};

/// One given batch in every step: `tokens` [batch, sequence + 1] and optionally
/// `mask` [batch, sequence], 0 where a target does not count, or `inputs` and
/// `targets` for models whose inputs are not tokens.
class FixedBatch : public Batches {
public:
  /// Throws InputError when a tensor is missing or its shape does not fit.
  FixedBatch(const Program &program, const SafetensorsFile &file);
  void fill(Split split, int64_t first, const Destination &input,
            const Destination &target) const override;
  bool hasValidation() const override { return false; }
  std::string describe() const override { return "one fixed batch"; }

private:
  void readTokens(const Program &program, const SafetensorsFile &file);
  std::vector<char> readTensor(const SafetensorsFile &file, const char *name,
                               const DataForm &form, int64_t microbatches);

  const Program &program;
  std::vector<char> inputs, targets;
};

} // namespace rota

#endif // ROTA_RUNTIME_DATA_BATCHES_H

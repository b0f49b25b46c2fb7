// SPDX-License-Identifier: Apache-2.0
//
// Batches on their way to ranks, on the model of LineModel.h.
#include "runtime/Error.h"
#include "runtime/train/Data.h"
#include "runtime/train/RunData.h"
#include "test/runtime/LineModel.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace rota;
using namespace rota::test;

namespace {

constexpr int64_t kBadAccumulationStep = 3;

/// Inputs and targets say where they belong; an accumulation step of training
/// is broken.
class NumberedBatches : public Batches {
public:
  explicit NumberedBatches(const Program &program)
      : sequences(program.timelineSequences()) {}

  static float value(Split split, int64_t first, bool target) {
    return static_cast<float>(10 * first +
                              (split == Split::Validation ? 2 : 0) + target);
  }
  void fill(Split split, int64_t first, const Destination &input,
            const Destination &target) const override {
    int64_t accumulationStep = first / sequences;
    if (split == Split::Train && accumulationStep == kBadAccumulationStep)
      throw InputError("token 7");
    auto one = [&](const Destination &out, bool isTarget) {
      if (out.place)
        std::fill_n(reinterpret_cast<float *>(out.place), out.part.elements(),
                    value(split, first, isTarget));
    };
    one(input, false);
    one(target, true);
    std::lock_guard lock(mutex);
    if (split == Split::Train)
      readers[accumulationStep].insert(std::this_thread::get_id());
    ++fills[{split, accumulationStep}];
  }
  bool hasValidation() const override { return true; }
  std::string describe() const override { return "numbers"; }

  const int64_t sequences; // sequences of an accumulation step
  mutable std::mutex mutex;
  // By accumulation step.
  mutable std::map<int64_t, std::set<std::thread::id>> readers;
  mutable std::map<std::pair<Split, int64_t>, int> fills;
};

void expectAccumulationStep(Rank &rank, Split split, int64_t accumulationStep) {
  const Program &program = rank.program();
  for (bool target : {false, true}) {
    const DataForm &form = target ? program.target : program.input;
    int64_t offset = target ? rank.stage().targetData : rank.stage().inputData;
    if (offset < 0)
      continue;
    int64_t count =
        partOf(form.shape, form.division, program.mesh, rank.coordinates())
            .elements();
    for (int64_t m = 0; m < program.microbatches; ++m)
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(addressOf<float>(rank, offset)[m * count + i],
                  NumberedBatches::value(split,
                                         accumulationStep *
                                                 program.timelineSequences() +
                                             m * program.input.shape[0],
                                         target));
  }
}

} // namespace

/// The first batch is read by the rank, later ones by the one thread that reads
/// ahead, each once; validations come between. A broken accumulation step is an
/// error of the step that needs it.
TEST(BatchLoader, ReadsAheadInOneThread) {
  Program program = makeLine({2, 3, 2});
  LocalRanks ranks(makeLineExecutable(program), 2);
  NumberedBatches batches(program);
  int64_t sequences = program.timelineSequences();
  ReadAhead readAhead;
  std::set<std::thread::id> rankThreads;
  std::atomic<int> errors = 0;
  ranks.run([&](Rank &rank) {
    {
      std::lock_guard lock(batches.mutex);
      rankThreads.insert(std::this_thread::get_id());
    }
    BatchLoader loader(rank, batches, readAhead);
    for (int64_t accumulationStep = 0; accumulationStep < kBadAccumulationStep;
         ++accumulationStep) {
      loader.load(accumulationStep * sequences);
      expectAccumulationStep(rank, Split::Train, accumulationStep);
      if (accumulationStep == 1)
        for (int64_t v : {0, 1}) {
          loadAccumulationStep(rank, batches, Split::Validation, v * sequences);
          expectAccumulationStep(rank, Split::Validation, v);
        }
    }
    try {
      loader.load(kBadAccumulationStep * sequences);
    } catch (const InputError &error) {
      EXPECT_STREQ(error.what(), "token 7");
      ++errors;
    }
    EXPECT_THROW(loader.load(kBadAccumulationStep * sequences), InputError);
    // Another accumulation step than the one that was expected.
    loader.load((kBadAccumulationStep + 4) * sequences);
    expectAccumulationStep(rank, Split::Train, kBadAccumulationStep + 4);
  });
  EXPECT_EQ(errors, ranks.count());
  std::set<std::thread::id> ahead = batches.readers[1];
  EXPECT_EQ(ahead.size(), 1u);
  EXPECT_EQ(batches.readers[2], ahead);
  EXPECT_FALSE(rankThreads.contains(*ahead.begin()));
  for (std::thread::id reader : batches.readers[0])
    EXPECT_TRUE(rankThreads.contains(reader));
  for (int64_t accumulationStep = 0; accumulationStep < kBadAccumulationStep;
       ++accumulationStep)
    EXPECT_EQ((batches.fills[{Split::Train, accumulationStep}]),
              ranks.count() * program.microbatches);
}

/// A run whose data shrinks ends with an error that names the file.
TEST(BatchLoader, GivesTheErrorOfAFileThatShrinks) {
  TemporaryFolder folder;
  std::string path = folder.write("t", std::string(4000, 'x'));
  Program program = makeLine(1, 2);
  program.vocabulary = program.classes = 256;
  program.input = program.target = {ElementType::I32, {1, 8}};
  Options options;
  options.data = {path};
  RunData data(program, options);
  LocalRanks ranks(makeLineExecutable(program), 1);
  ReadAhead readAhead;
  std::string message = messageOf<RunError>([&] {
    ranks.run([&](Rank &rank) {
      BatchLoader loader(rank, data.training(), readAhead);
      loader.load(0);
      std::filesystem::resize_file(path, 0);
      for (int64_t accumulationStep = 1; accumulationStep < 4;
           ++accumulationStep)
        loader.load(accumulationStep * program.timelineSequences());
    });
  });
  EXPECT_TRUE(
      message.starts_with("'" + path + "': expected 8 bytes at offset "))
      << message;
  EXPECT_TRUE(
      message.ends_with("got 0: the file had 4000 bytes when the run began"))
      << message;
}

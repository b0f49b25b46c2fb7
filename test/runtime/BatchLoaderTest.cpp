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

constexpr int64_t kBadBatch = 3;

/// Inputs and targets say where they belong; a batch of training is broken.
class NumberedBatches : public Batches {
public:
  static float value(Split split, int64_t batch, int64_t microbatch,
                     bool target) {
    return static_cast<float>(1000 * batch + 10 * microbatch +
                              (split == Split::Validation ? 2 : 0) + target);
  }
  void fill(Split split, int64_t batch, int64_t microbatch,
            const Destination &input,
            const Destination &target) const override {
    if (split == Split::Train && batch == kBadBatch)
      throw InputError("token 7");
    auto one = [&](const Destination &out, bool isTarget) {
      if (out.place)
        std::fill_n(reinterpret_cast<float *>(out.place), out.part.elements(),
                    value(split, batch, microbatch, isTarget));
    };
    one(input, false);
    one(target, true);
    std::lock_guard lock(mutex);
    if (split == Split::Train)
      readers[batch].insert(std::this_thread::get_id());
    ++fills[{split, batch}];
  }
  bool hasValidation() const override { return true; }
  std::string describe() const override { return "numbers"; }

  mutable std::mutex mutex;
  mutable std::map<int64_t, std::set<std::thread::id>> readers;
  mutable std::map<std::pair<Split, int64_t>, int> fills;
};

void expectBatch(Rank &rank, Split split, int64_t batch) {
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
        ASSERT_EQ(placeOf<float>(rank, offset)[m * count + i],
                  NumberedBatches::value(split, batch, m, target));
  }
}

} // namespace

/// The first batch is read by the rank, later ones by the one thread that reads
/// ahead, each once; validations come between. A broken batch is an error of
/// the step that needs it.
TEST(BatchLoader, ReadsAheadInOneThread) {
  Program program = makeLine({2, 3, 2});
  LocalRanks ranks(makeLineExecutable(program), 2);
  NumberedBatches batches;
  ReadAhead readAhead;
  std::set<std::thread::id> rankThreads;
  std::atomic<int> errors = 0;
  ranks.run([&](Rank &rank) {
    {
      std::lock_guard lock(batches.mutex);
      rankThreads.insert(std::this_thread::get_id());
    }
    BatchLoader loader(rank, batches, readAhead);
    for (int64_t batch = 0; batch < kBadBatch; ++batch) {
      loader.load(batch);
      expectBatch(rank, Split::Train, batch);
      if (batch == 1)
        for (int64_t v : {0, 1}) {
          loadBatch(rank, batches, Split::Validation, v);
          expectBatch(rank, Split::Validation, v);
        }
    }
    try {
      loader.load(kBadBatch);
    } catch (const InputError &error) {
      EXPECT_STREQ(error.what(), "token 7");
      ++errors;
    }
    EXPECT_THROW(loader.load(kBadBatch), InputError);
    // Another batch than the one that was expected.
    loader.load(kBadBatch + 4);
    expectBatch(rank, Split::Train, kBadBatch + 4);
  });
  EXPECT_EQ(errors, ranks.count());
  std::set<std::thread::id> ahead = batches.readers[1];
  EXPECT_EQ(ahead.size(), 1u);
  EXPECT_EQ(batches.readers[2], ahead);
  EXPECT_FALSE(rankThreads.contains(*ahead.begin()));
  for (std::thread::id reader : batches.readers[0])
    EXPECT_TRUE(rankThreads.contains(reader));
  for (int64_t batch = 0; batch < kBadBatch; ++batch)
    EXPECT_EQ((batches.fills[{Split::Train, batch}]),
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
      for (int64_t batch = 1; batch < 4; ++batch)
        loader.load(batch);
    });
  });
  EXPECT_TRUE(
      message.starts_with("'" + path + "': expected 8 bytes at offset "))
      << message;
  EXPECT_TRUE(
      message.ends_with("got 0: the file had 4000 bytes when the run began"))
      << message;
}

// SPDX-License-Identifier: Apache-2.0
//
// Signals to a training run.
#include "runtime/train/Signals.h"

#include <gtest/gtest.h>

#include <csignal>

using namespace rota;

namespace {

/// Restores the default actions.
struct Signals : testing::Test {
  void SetUp() override { catchSignals(); }
  void TearDown() override {
    for (int signal : {SIGINT, SIGTERM, SIGUSR1})
      std::signal(signal, SIG_DFL);
  }
};
using SignalsDeathTest = Signals;

} // namespace

TEST_F(Signals, TheFirstAsksForTheEnd) {
  for (int signal : {SIGINT, SIGTERM}) {
    catchSignals();
    EXPECT_FALSE(isInterrupted());
    std::raise(signal);
    EXPECT_TRUE(isInterrupted());
  }
}

TEST_F(SignalsDeathTest, TheSecondEndsTheProcess) {
  for (int first : {SIGINT, SIGTERM})
    for (int second : {SIGINT, SIGTERM})
      EXPECT_EXIT(
          {
            std::raise(first);
            std::raise(second);
          },
          testing::KilledBySignal(second), "");
}

TEST_F(Signals, ARequestIsTakenOnce) {
  EXPECT_FALSE(takeSaveRequest());
  std::raise(SIGUSR1);
  EXPECT_TRUE(takeSaveRequest());
  EXPECT_FALSE(takeSaveRequest());
  std::raise(SIGUSR1);
  EXPECT_TRUE(takeSaveRequest());
  EXPECT_FALSE(isInterrupted());
}

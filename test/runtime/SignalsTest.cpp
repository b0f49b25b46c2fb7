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
  void SetUp() override { catchAnew(); }
  void TearDown() override { restore(); }

  static void restore() {
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
      std::signal(signal, SIG_DFL);
  }
  static void catchAnew() {
    restore();
    catchSignals();
  }
};
using SignalsDeathTest = Signals;

} // namespace

TEST_F(Signals, TheFirstAsksForTheEnd) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    catchAnew();
    EXPECT_FALSE(isInterrupted());
    std::raise(signal);
    EXPECT_TRUE(isInterrupted());
  }
}

TEST_F(SignalsDeathTest, TheSecondEndsTheProcess) {
  for (int first : {SIGINT, SIGTERM, SIGHUP})
    for (int second : {SIGINT, SIGTERM})
      EXPECT_EXIT(
          {
            std::raise(first);
            std::raise(second);
          },
          testing::KilledBySignal(second), "");
}

// systemd sends SIGHUP after SIGTERM, and a terminal sends it twice.
TEST_F(Signals, ALaterHangupDoesNothing) {
  for (int first : {SIGTERM, SIGHUP}) {
    catchAnew();
    std::raise(first);
    std::raise(SIGHUP);
    EXPECT_TRUE(isInterrupted());
  }
}

TEST_F(Signals, AHangupThatIsIgnoredStaysSo) {
  std::signal(SIGHUP, SIG_IGN); // by nohup
  catchSignals();
  std::raise(SIGHUP);
  EXPECT_FALSE(isInterrupted());
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

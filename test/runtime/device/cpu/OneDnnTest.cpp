// SPDX-License-Identifier: Apache-2.0
//
// The search for oneDNN. GemmTest.cpp has the products of the version that is
// found.
#include "runtime/device/cpu/OneDnn.h"
#include "runtime/Error.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>
#include <vector>

using namespace rota;
using namespace rota::test;

namespace {

TEST(OneDnn, NamesEachLibraryThatCannotBeUsed) {
  std::vector<const char *> names = {"libdnnl.so.0", "libm.so.6"};
  std::string fault = messageOf<InputError>([&] { findOneDnn(names); });
  for (const char *part :
       {"cannot load oneDNN", "libdnnl2", "; libdnnl.so.0: ",
        "; libm.so.6: expected 'dnnl_version', got a library without it"})
    EXPECT_NE(fault.find(part), fault.npos) << fault;
}

/// tools/packages has version 2.
TEST(OneDnn, GoesOnToTheNextName) {
  std::vector<const char *> names = {"libm.so.6", "libdnnl.so.2"};
  EXPECT_TRUE(findOneDnn(names).starts_with("2."));
}

TEST(OneDnn, PrefersVersionThree) {
  std::vector<const char *> names = {"libdnnl.so.3", "libdnnl.so.2"};
  EXPECT_EQ(oneDnnVersion(), findOneDnn(names));
}

} // namespace

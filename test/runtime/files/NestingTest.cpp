// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/Nesting.h"

#include <gtest/gtest.h>

using namespace rota;

namespace {

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all += text;
  return all;
}

TEST(Nesting, CountsLevelsOfAllBrackets) {
  for (std::string_view bracket : {"[", "{", "(", "<", "module {", "{\"a\":"}) {
    EXPECT_EQ(nestingMistake(repeated(bracket, kMostNesting)), "");
    std::string deep = repeated(bracket, kMostNesting + 1);
    EXPECT_EQ(findTooDeep(deep), deep.find_last_of("[{(<")) << bracket;
  }
  EXPECT_EQ(nestingMistake(repeated("[", 60000)),
            "expected at most 256 levels of brackets, got more at byte 256");
}

TEST(Nesting, ClosedBracketsDoNotCount) {
  for (std::string_view text :
       {"[]", "<()>{}", "]", "f() -> (i32)\n", "a <= b", "(x >= 0)",
        "affine_set<(d) : (d <= 8, d >= 0)>"})
    EXPECT_EQ(nestingMistake(repeated(text, 1000)), "") << text;
}

TEST(Nesting, StringsAndCommentsDoNotCount) {
  for (std::string_view text : {R"("[[{")", R"("\"[")", R"("\\")", "// [[(\n"})
    EXPECT_EQ(nestingMistake(repeated(text, 1000)), "") << text;
  // After a string that ends brackets count again.
  EXPECT_NE(nestingMistake(repeated(R"("\\"[)", 1000)), "");
  EXPECT_EQ(nestingMistake("\"" + repeated("[", 1000)), "");
  EXPECT_NE(nestingMistake("\"\n" + repeated("[", 1000)), "");
}

} // namespace

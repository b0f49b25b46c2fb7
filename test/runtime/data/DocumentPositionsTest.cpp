// SPDX-License-Identifier: Apache-2.0
//
// Positions in documents: first and last tokens that end one, and two in a row.
#include "runtime/data/DocumentPositions.h"

#include "gtest/gtest.h"

#include <vector>

using Tokens = std::vector<int32_t>;

static Tokens positionsOf(Tokens tokens, int64_t end) {
  rota::findDocumentPositions(tokens, end);
  return tokens;
}

TEST(DocumentPositions, BeginAnewAfterAnEndToken) {
  EXPECT_EQ(positionsOf({5, 7, 2, 9, 2, 2, 4}, 2),
            Tokens({0, 1, 2, 0, 1, 0, 0}));
  EXPECT_EQ(positionsOf({2, 5, 2}, 2), Tokens({0, 0, 1}));
  EXPECT_EQ(positionsOf({5, 7, 9}, 2), Tokens({0, 1, 2}));
  EXPECT_EQ(positionsOf({}, 2), Tokens());
}

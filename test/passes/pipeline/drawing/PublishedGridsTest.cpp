// SPDX-License-Identifier: Apache-2.0
//
// The grids of published schedules, as the timetables at the heads of their
// generators show them.
#include "passes/pipeline/drawing/Drawing.h"
#include "test/passes/pipeline/Examples.h"

using namespace rota::pipe;

namespace {

struct PublishedGrid {
  const char *name;
  int stages, repeats, microbatches;
  const char *grid;
};

constexpr PublishedGrid grids[] = {
    {"looped-bfs", 2, 2, 2, R"(
slot    0   1   2   3   4   5   6   7   8   9
rank 0  0F0 0F1 2F0 2F1 .   .   2B0 2B1 0B0 0B1
rank 1  .   1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1 .
)"},
    {"looped-bfs", 3, 2, 4, R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19
rank 0  0F0 0F1 0F2 0F3 3F0 3F1 3F2 3F3 .   .   .   .   3B0 3B1 3B2 3B3 0B0 0B1 0B2 0B3
rank 1  .   1F0 1F1 1F2 1F3 4F0 4F1 4F2 4F3 .   .   4B0 4B1 4B2 4B3 1B0 1B1 1B2 1B3 .
rank 2  .   .   2F0 2F1 2F2 2F3 5F0 5F1 5F2 5F3 5B0 5B1 5B2 5B3 2B0 2B1 2B2 2B3 .   .
)"},
    {"eager-1f1b", 3, 1, 3, R"(
slot    0  1  2  3  4  5  6  7  8  9
rank 0  F0 F1 F2 .  .  B0 .  B1 .  B2
rank 1  .  F0 F1 F2 B0 .  B1 .  B2 .
rank 2  .  .  F0 B0 F1 B1 F2 B2 .  .
)"},
    {"eager-1f1b", 3, 1, 5, R"(
slot    0  1  2  3  4  5  6  7  8  9  10 11 12 13
rank 0  F0 F1 F2 F3 F4 B0 .  B1 .  B2 .  B3 .  B4
rank 1  .  F0 F1 F2 B0 F3 B1 F4 B2 .  B3 .  B4 .
rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 .  .
)"},
    {"interleaved-overlap", 2, 2, 4, R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17
rank 0  0F0 0F1 2F0 2F1 0F2 0F3 2B0 2F2 2B1 2F3 0B0 .   0B1 .   2B2 2B3 0B2 0B3
rank 1  .   1F0 1F1 3F0 3F1 3B0 1F2 3B1 1F3 1B0 3F2 1B1 3F3 3B2 3B3 1B2 1B3 .
)"},
    {"interleaved-overlap", 3, 2, 3, R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15
rank 0  0F0 0F1 0F2 3F0 3F1 3F2 .   .   .   3B0 .   3B1 3B2 0B0 0B1 0B2
rank 1  .   1F0 1F1 1F2 4F0 4F1 4F2 .   4B0 .   4B1 4B2 1B0 1B1 1B2 .
rank 2  .   .   2F0 2F1 2F2 5F0 5F1 5B0 5F2 5B1 5B2 2B0 2B1 2B2 .   .
)"},
    {"zb1p", 3, 1, 3, R"(
slot    0  1  2  3  4  5  6  7  8  9  10
rank 0  F0 F1 F2 .  .  I0 W0 I1 W1 I2 W2
rank 1  .  F0 F1 .  I0 F2 I1 W0 I2 W1 W2
rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 W1 W2
)"},
    {"zb1p", 3, 1, 5, R"(
slot    0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15 16
rank 0  F0 F1 F2 .  .  I0 W0 F3 I1 W1 F4 I2 W2 I3 W3 I4 W4
rank 1  .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 F4 I3 W2 I4 W3 W4
rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 F4 I4 W2 W3 W4
)"},
    {"zb2p", 3, 1, 3, R"(
slot    0  1  2  3  4  5  6  7  8  9  10 11
rank 0  F0 F1 F2 .  .  I0 W0 I1 W1 I2 W2 .
rank 1  .  F0 F1 F2 I0 .  I1 .  I2 W0 W1 W2
rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 W1 W2 .
)"},
    {"zb2p", 3, 1, 6, R"(
slot    0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15 16 17 18 19
rank 0  F0 F1 F2 F3 F4 I0 W0 F5 I1 W1 I2 W2 I3 W3 I4 W4 I5 W5 .  .
rank 1  .  F0 F1 F2 I0 F3 I1 F4 I2 W0 F5 I3 W1 I4 W2 I5 W3 W4 W5 .
rank 2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 F5 I5 W1 W2 W3 W4 W5
)"},
    {"interleaved-zero-bubble", 2, 2, 2, R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12
rank 0  0F0 0F1 2F0 2F1 .   2I0 2W0 2I1 2W1 0I0 0W0 0I1 0W1
rank 1  .   1F0 1F1 3F0 3I0 3F1 3I1 3W0 1I0 3W1 1I1 1W0 1W1
)"},
    {"interleaved-zero-bubble", 3, 2, 6, R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21  22  23  24  25  26  27  28  29  30  31  32  33  34  35  36  37
rank 0  0F0 0F1 0F2 3F0 3F1 3F2 .   .   3I0 3W0 0F3 3I1 3W1 0F4 3I2 3W2 0F5 0I0 0W0 3F3 0I1 0W1 3F4 0I2 0W2 3F5 3I3 3W3 3I4 3W4 3I5 3W5 0I3 0W3 0I4 0W4 0I5 0W5
rank 1  .   1F0 1F1 1F2 4F0 4F1 .   4I0 4F2 4I1 4W0 1F3 4I2 4W1 1F4 1I0 4W2 1F5 1I1 1W0 4F3 1I2 1W1 4F4 4I3 1W2 4F5 4I4 4W3 4I5 4W4 1I3 4W5 1I4 1W3 1I5 1W4 1W5
rank 2  .   .   2F0 2F1 2F2 5F0 5I0 5F1 5I1 5F2 5I2 5W0 2F3 2I0 5W1 2F4 2I1 5W2 2F5 2I2 2W0 5F3 5I3 2W1 5F4 5I4 2W2 5F5 5I5 5W3 2I3 5W4 2I4 5W5 2I5 2W3 2W4 2W5
)"},
    {"zbv", 2, 2, 2, R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13
rank 0  0F0 0F1 .   3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 .   0I1 0W1
rank 1  .   1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 2I1 2W1 1I1 1W1 .
)"},
    {"zbv", 3, 2, 5, R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21  22  23  24  25  26  27  28  29  30  31
rank 0  0F0 0F1 0F2 0F3 0F4 5F0 5I0 5W0 5F1 5I1 5W1 5F2 5I2 5W2 0I0 0W0 5F3 5I3 5W3 0I1 0W1 5F4 5I4 5W4 0I2 0W2 0I3 0W3 0I4 0W4 .   .
rank 1  .   1F0 1F1 1F2 4F0 1F3 4F1 4I0 4W0 4F2 4I1 4W1 1F4 1I0 1W0 4F3 4I2 4W2 1I1 1W1 4F4 4I3 4W3 1I2 4I4 1I3 1W2 1I4 1W3 4W4 1W4 .
rank 2  .   .   2F0 3F0 2F1 3F1 2F2 3F2 3I0 3W0 2F3 2I0 2W0 3F3 3I1 3W1 2F4 2I1 2W1 3F4 3I2 3W2 2I2 3I3 2I3 3I4 2I4 2W2 3W3 3W4 2W3 2W4
)"},
    {"v-half", 2, 2, 2, R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13
rank 0  0F0 0F1 .   3F0 3I0 3W0 .   0I0 3F1 3I1 3W1 0W0 0I1 0W1
rank 1  .   1F0 2F0 1F1 .   2I0 1I0 2F1 2W0 1W0 2I1 1I1 2W1 1W1
)"},
    {"v-half", 3, 2, 5, R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21  22  23  24  25  26  27  28  29  30  31  32  33  34  35
rank 0  0F0 0F1 .   .   .   5F0 5I0 5W0 0F2 5F1 5I1 5W1 0F3 0I0 5F2 5I2 5W2 0W0 0F4 0I1 5F3 5I3 5W3 0W1 .   0I2 5F4 5I4 5W4 0W2 0I3 0W3 .   .   0I4 0W4
rank 1  .   1F0 .   .   4F0 1F1 .   4I0 4F1 1F2 4W0 4I1 1I0 4F2 1F3 4W1 1W0 4I2 1I1 4F3 1F4 4W2 1W1 4I3 1I2 4F4 4W3 1W2 4I4 1I3 4W4 1W3 .   1I4 1W4 .
rank 2  .   .   2F0 3F0 .   .   2F1 3F1 3I0 3W0 2F2 2I0 3F2 3I1 3W1 2W0 2F3 2I1 3F3 3I2 3W2 2W1 2F4 2I2 3F4 3I3 3W3 2W2 2I3 3I4 3W4 2W3 2I4 2W4 .   .
)"},
    {"v-min", 2, 2, 2, R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14
rank 0  0F0 .   .   3F0 3I0 3W0 0F1 0I0 0W0 3F1 3I1 3W1 .   0I1 0W1
rank 1  .   1F0 2F0 .   .   2I0 1I0 1F1 2F1 2W0 1W0 2I1 1I1 2W1 1W1
)"},
    {"v-min", 3, 2, 5, R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21  22  23  24  25  26  27  28  29  30  31  32  33  34  35  36  37
rank 0  0F0 0F1 .   .   .   5F0 5I0 5W0 0F2 .   .   5F1 5I1 0I0 5W1 0W0 0F3 5F2 5I2 0I1 5W2 0W1 0F4 5F3 5I3 0I2 5W3 0W2 .   5F4 5I4 0I3 5W4 0W3 .   .   0I4 0W4
rank 1  .   1F0 .   .   4F0 1F1 .   4I0 4W0 .   4F1 1F2 1I0 4I1 4W1 1W0 4F2 1F3 1I1 4I2 4W2 1W1 4F3 1F4 1I2 4I3 4W3 1W2 4F4 .   1I3 4I4 4W4 1W3 .   1I4 1W4 .
rank 2  .   .   2F0 3F0 .   .   2F1 .   3I0 3F1 3W0 2I0 2F2 2W0 3I1 3F2 3W1 2I1 2F3 2W1 3I2 3F3 3W2 2I2 2F4 2W2 3I3 3F4 3W3 2I3 2W3 .   3I4 3W4 2I4 2W4 .   .
)"},
    {"dualpipev", 2, 2, 4, R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21  22  23  24
rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3I1 3W1 3F2 0I0 0W0 3I2 3W2 3F3 0I1 0W1 3I3 3W3 0I2 0W2 .   0I3 0W3
rank 1  .   1F0 2F0 1F1 2F1 1F2 2I0 2W0 2F2 1I0 1W0 1F3 2I1 2W1 2F3 1I1 1W1 2I2 2W2 1I2 1W2 2I3 1I3 2W3 1W3
)"},
    {"dualpipev", 3, 2, 7, R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21  22  23  24  25  26  27  28  29  30  31  32  33  34  35  36  37  38  39  40  41  42  43
rank 0  0F0 0F1 0F2 0F3 0F4 5F0 5I0 5W0 5F1 5I1 5W1 5F2 0F5 5I2 5W2 5F3 0I0 0W0 0F6 5I3 5W3 5F4 0I1 0W1 5I4 5W4 5F5 0I2 0W2 5I5 5W5 5F6 0I3 0W3 5I6 5W6 0I4 0W4 .   .   0I5 0W5 0I6 0W6
rank 1  .   1F0 1F1 1F2 4F0 1F3 4F1 4I0 4W0 4F2 1F4 4I1 4W1 4F3 1I0 1W0 1F5 4I2 4W2 4F4 1I1 1W1 1F6 4I3 4W3 4F5 1I2 1W2 4I4 4W4 4F6 1I3 1W3 4I5 4W5 1I4 1W4 4I6 .   1I5 4W6 1I6 1W5 1W6
rank 2  .   .   2F0 3F0 2F1 3F1 2F2 3F2 2F3 3I0 3W0 3F3 2I0 2W0 2F4 3I1 3W1 3F4 2I1 2W1 2F5 3I2 3W2 3F5 2I2 2W2 2F6 3I3 3W3 3F6 2I3 2W3 3I4 3W4 2I4 2W4 3I5 3W5 2I5 3I6 2I6 2W5 3W6 2W6
)"},
};

TEST(PublishedGrids, areThese) {
  for (const auto &[name, stages, repeats, microbatches, expected] : grids) {
    Shape shape = demandedShape(name, {stages, repeats, microbatches});
    Timeline timeline = generated(name, stages, shape.repeats, microbatches, 1,
                                  false, shape.placement);
    EXPECT_EQ("\n" + drawGrid(timeline, *simulate(timeline, {})), expected)
        << name;
  }
}

} // namespace

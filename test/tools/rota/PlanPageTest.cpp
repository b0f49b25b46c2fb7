// SPDX-License-Identifier: Apache-2.0
//
// The front of a search on the page of a plan, and what pages share.
#include "tools/rota/report/PlanPage.h"
#include "tools/rota/report/MemoryBars.h"
#include "tools/rota/report/Svg.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <fstream>

using namespace rota::report;

namespace {

/// How often `part` stands in `text`.
size_t countOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + 1))
    ++count;
  return count;
}

const std::vector<SearchedPlan> kPlans = {
    {"--remat none", 10.0, int64_t(80) << 30, true, true},
    {"--remat minimal", 10.4, int64_t(60) << 30, false, true},
    {"--schedule <gpipe>", 12.0, int64_t(70) << 30, false, false},
    {"--remat full", 13.0, int64_t(40) << 30, false, true}};

TEST(PlanPage, DrawsTheFrontOfASearch) {
  std::string html = searchSection(kPlans);
  EXPECT_EQ(countOf(html, "<circle"), kPlans.size());
  EXPECT_EQ(countOf(html, "class=\"fill s2 best\""), 1u);
  EXPECT_EQ(countOf(html, "class=\"fill s1\""), 2u);
  EXPECT_EQ(countOf(html, "class=\"other\""), 1u);
  // A path through the three plans of the front, the smallest first.
  size_t path = html.find("<path d=\"M");
  ASSERT_NE(path, html.npos);
  EXPECT_EQ(countOf(html.substr(path, html.find('"', path + 9) - path), "L"),
            2u);
  EXPECT_NE(html.find("<title>--schedule &lt;gpipe&gt;: 12 s, 70.0 GiB"),
            html.npos);
  EXPECT_NE(html.find("--remat none, 10 s, 80.0 GiB"), html.npos);
}

TEST(PlanPage, NeedsNoSearch) {
  EXPECT_EQ(searchSection({}), "");
  PlanPage page;
  page.plan = {{"model", "m"}};
  EXPECT_EQ(makePlanPage(page).find("<h2>Search"), std::string::npos);
  page.searched = kPlans;
  std::string html = makePlanPage(page);
  EXPECT_NE(html.find("<h2>Search"), html.npos);
  if (const char *path = std::getenv("ROTA_PLAN_PAGE")) // to look at it
    std::ofstream(path) << html;
}

TEST(Svg, TimesHaveTheUnitOfWhatIsPrinted) {
  EXPECT_EQ(secondsText(0.9994), "999 ms");
  EXPECT_EQ(secondsText(0.9996), "1 s");
  EXPECT_EQ(secondsText(0.9996e-3), "1 ms");
  EXPECT_EQ(secondsText(119.7), "120 s");
  EXPECT_EQ(secondsText(120), "2.0 min");
  EXPECT_EQ(secondsText(3 * 3600), "3.0 h");
  EXPECT_EQ(secondsText(10 * 86400), "10.0 days");
}

TEST(Svg, AChartOfOneStepHasThatStep) {
  std::string chart = lineChart({"Loss", ""}, {{"training", "s1", {{1, 2.5}}}});
  EXPECT_EQ(countOf(chart, ">1</text>"), 1u);
  EXPECT_EQ(countOf(chart, ">2</text>"), 0u);
}

/// Bars that are left out are said to be.
TEST(MemoryBars, ManyStagesAreCut) {
  Json stages = Json::array();
  for (int stage = 0; stage < 100; ++stage)
    stages.push_back({{"uses", {{"parameters", 1 << 20}}}});
  std::string html = memoryBars(barsOfStages(stages));
  EXPECT_EQ(countOf(html, "<title>stage"), 64u);
  EXPECT_NE(html.find("The first 64 of 100 rows."), html.npos);
}

} // namespace

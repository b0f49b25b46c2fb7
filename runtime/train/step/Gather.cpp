// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/Gather.h"

#include <utility>

namespace rota {

/// Starts bringing `own` of each rank of the group to `all`.
static Request startNumbers(Rank &rank, const RankGroup &group,
                            const std::vector<double> &own,
                            std::vector<double> &all) {
  all.resize(own.size() * group.ranks.size());
  // Bits travel as i32, so that nothing is rounded.
  Collective gather;
  gather.kind = Collective::Kind::AllGather;
  gather.type = ElementType::I32;
  gather.size = static_cast<int64_t>(group.ranks.size());
  gather.inner = 2 * static_cast<int64_t>(own.size());
  gather.reason = "numbers of all ranks";
  if (gather.inner == 0)
    return 0;
  return rank.host().start(Stream::Step, gather, group, own.data(), all.data());
}

std::vector<double> gatherNumbers(Rank &rank, const RankGroup &group,
                                  const std::vector<double> &own) {
  std::vector<double> all;
  rank.host().wait(startNumbers(rank, group, own, all));
  return all;
}

double meetingTime(Rank &rank) {
  std::vector<double> own = {0.0}, all;
  return rank.host().wait(startNumbers(rank, rank.everyone(), own, all)).end;
}

NumberGather::NumberGather(Rank &rank)
    : rank(rank), numbers(std::make_shared<Numbers>()) {
  rank.keep(numbers);
}

void NumberGather::start(std::vector<double> own) {
  numbers->own = std::move(own);
  request = startNumbers(rank, rank.everyone(), numbers->own, numbers->all);
  open = true;
}

std::vector<double> NumberGather::finish() {
  rank.host().wait(request);
  open = false;
  return numbers->all;
}

void sendBytes(Rank &rank, int to, const char *data, int64_t bytes) {
  forEachPiece(bytes, [&](int64_t at, int64_t count) {
    rank.host().wait(rank.host().send(Stream::Step, to, data + at, count));
  });
}

void receiveBytes(Rank &rank, int from, char *data, int64_t bytes) {
  forEachPiece(bytes, [&](int64_t at, int64_t count) {
    rank.host().wait(rank.host().receive(Stream::Step, from, data + at, count));
  });
}

std::vector<std::string> gatherTexts(Rank &rank, const std::string &own) {
  std::vector<double> sizes =
      gatherNumbers(rank, rank.everyone(), {static_cast<double>(own.size())});
  std::vector<std::string> texts;
  if (rank.number() != 0) {
    sendBytes(rank, 0, own.data(), static_cast<int64_t>(own.size()));
    return texts;
  }
  texts.push_back(own);
  for (size_t r = 1; r < sizes.size(); ++r) {
    std::string &text = texts.emplace_back(static_cast<size_t>(sizes[r]), ' ');
    receiveBytes(rank, static_cast<int>(r), text.data(),
                 static_cast<int64_t>(text.size()));
  }
  return texts;
}

std::string textOfRankZero(Rank &rank, const std::string &own) {
  std::vector<double> sizes =
      gatherNumbers(rank, rank.everyone(), {static_cast<double>(own.size())});
  if (rank.number() != 0) {
    std::string text(static_cast<size_t>(sizes[0]), ' ');
    receiveBytes(rank, 0, text.data(), static_cast<int64_t>(text.size()));
    return text;
  }
  for (size_t r = 1; r < sizes.size(); ++r)
    sendBytes(rank, static_cast<int>(r), own.data(),
              static_cast<int64_t>(own.size()));
  return own;
}

std::vector<bool> decideTogether(Rank &rank, const std::vector<bool> &own) {
  std::vector<double> all = gatherNumbers(
      rank, rank.everyone(), std::vector<double>(own.begin(), own.end()));
  std::vector<bool> decisions(own.size());
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] != 0.0)
      decisions[i % own.size()] = true;
  return decisions;
}

} // namespace rota

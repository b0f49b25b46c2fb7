// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/FlightWriter.h"
#include "runtime/program/Program.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace rota {

namespace {

constexpr uint64_t kPrinted = 5; // events of a rank
constexpr size_t kPrintedRanks = 4;

/// Text for a file, in a buffer of a fixed size.
class SignalSafeWriter {
public:
  explicit SignalSafeWriter(int file) : file(file) {}

  SignalSafeWriter &operator<<(const char *text) {
    for (; *text; ++text)
      put(*text);
    return *this;
  }
  SignalSafeWriter &operator<<(int64_t value) {
    if (value < 0)
      put('-');
    digits(value < 0 ? 0 - static_cast<uint64_t>(value) : value, 1);
    return *this;
  }
  /// `value` / 10^places with that many digits after the point.
  void decimal(int64_t value, int places) {
    int64_t unit = 1;
    for (int i = 0; i < places; ++i)
      unit *= 10;
    *this << value / unit << ".";
    digits(static_cast<uint64_t>(value % unit), places);
  }
  bool flush() {
    for (size_t from = 0; from < used && isGood;) {
      ssize_t n = write(file, buffer.data() + from, used - from);
      if (n > 0)
        from += static_cast<size_t>(n);
      else if (n == 0 || errno != EINTR)
        isGood = false;
    }
    used = 0;
    return isGood;
  }

private:
  void put(char c) {
    if (used == buffer.size())
      flush();
    buffer[used++] = c;
  }
  void digits(uint64_t value, int least) {
    char text[20];
    int count = 0;
    for (; value > 0 || count < least; value /= 10)
      text[count++] = static_cast<char>('0' + value % 10);
    while (count > 0)
      put(text[--count]);
  }

  std::array<char, 4096> buffer;
  size_t used = 0;
  int file;
  bool isGood = true;
};

bool isBegin(FlightEvent event) {
  switch (event) {
  case FlightEvent::ActionBegin:
  case FlightEvent::WaitBegin:
  case FlightEvent::StepBegin:
  case FlightEvent::OptimizerBegin:
  case FlightEvent::ValidationBegin:
  case FlightEvent::CheckpointBegin:
    return true;
  default:
    return false;
  }
}

bool isInstant(FlightEvent event) {
  return event == FlightEvent::TransferStart ||
         event == FlightEvent::DeviceReached || event == FlightEvent::Failure;
}

/// "0F3"; "-" for a number that the stage does not have.
void addAction(SignalSafeWriter &out, const FlightRecorder &recorder,
               int64_t number) {
  const Stage &stage = recorder.program.stages[recorder.stage];
  if (number < 0 || number >= static_cast<int64_t>(stage.actions.size())) {
    out << "-";
    return;
  }
  auto action = static_cast<int>(number);
  const ActionTemplate &actionTemplate = stage.templateOf(action);
  out << int64_t(actionTemplate.chunk) << toString(actionTemplate.kind);
  if (hasMicrobatch(actionTemplate.kind))
    out << int64_t(stage.actions[action].microbatch);
}

/// "0F3", "wait for 1RECV_F0", "step 12".
void addName(SignalSafeWriter &out, const FlightRecorder &recorder,
             const FlightRecorder::Entry &entry) {
  switch (entry.event) {
  case FlightEvent::ActionBegin:
  case FlightEvent::ActionEnd:
    return addAction(out, recorder, entry.value);
  case FlightEvent::TransferStart:
    out << "start of ";
    return addAction(out, recorder, entry.value);
  case FlightEvent::WaitBegin:
  case FlightEvent::WaitEnd:
    out << "wait for ";
    return addAction(out, recorder, entry.value);
  case FlightEvent::StepBegin:
  case FlightEvent::StepEnd:
    out << "step " << entry.value;
    return;
  case FlightEvent::OptimizerBegin:
  case FlightEvent::OptimizerEnd:
    out << "optimizer";
    return;
  case FlightEvent::ValidationBegin:
  case FlightEvent::ValidationEnd:
    out << "validation after step " << entry.value;
    return;
  case FlightEvent::CheckpointBegin:
  case FlightEvent::CheckpointEnd:
    out << "checkpoint after step " << entry.value;
    return;
  case FlightEvent::DeviceReached:
    out << "device at ";
    return addAction(out, recorder, entry.value);
  case FlightEvent::Failure:
    out << "failure";
    return;
  }
}

uint64_t firstOf(const FlightRecorder &recorder, uint64_t most) {
  uint64_t size = recorder.size();
  return size - std::min(size, most);
}

/// Nanoseconds of the last event; 0 without one.
int64_t lastTime(const FlightRecorder &recorder) {
  uint64_t size = recorder.size();
  return size > 0 ? recorder.at(size - 1).time : 0;
}

void printRank(SignalSafeWriter &out, const FlightRecorder &recorder,
               int64_t now) {
  out << "  rank " << int64_t(recorder.rank) << ":";
  uint64_t first = firstOf(recorder, kPrinted);
  for (uint64_t i = first; i < recorder.size(); ++i) {
    FlightRecorder::Entry entry = recorder.at(i);
    out << (i > first ? "; " : " ");
    addName(out, recorder, entry);
    if (!isInstant(entry.event))
      out << (isBegin(entry.event) ? " begins " : " ends ");
    else
      out << " ";
    out.decimal(std::max<int64_t>(0, now - entry.time) / 1000000, 3);
    out << " s ago";
  }
  out << "\n";
}

} // namespace

bool writeFlight(int file, const FlightList &list) {
  SignalSafeWriter out(file);
  out << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  int64_t process = getpid();
  for (size_t r = 0; r < list.count; ++r) {
    const FlightRecorder &recorder = *list.all[r];
    out << (r ? ",\n" : "")
        << "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":" << process
        << ",\"tid\":" << int64_t(recorder.rank)
        << ",\"args\":{\"name\":\"rank " << int64_t(recorder.rank) << "\"}}";
    uint64_t size = recorder.size();
    for (uint64_t i = firstOf(recorder, FlightRecorder::kEvents); i < size;
         ++i) {
      FlightRecorder::Entry entry = recorder.at(i);
      out << ",\n{\"name\":\"";
      addName(out, recorder, entry);
      bool instant = isInstant(entry.event);
      out << "\",\"ph\":\""
          << (instant                ? "i"
              : isBegin(entry.event) ? "B"
                                     : "E")
          << "\",\"pid\":" << process << ",\"tid\":" << int64_t(recorder.rank)
          << ",\"ts\":";
      out.decimal(entry.time, 3);
      out << (instant ? ",\"s\":\"t\"}" : "}");
    }
  }
  out << "\n]}\n";
  return out.flush();
}

void printFlight(int file, const FlightList &list, int rank, const char *path) {
  SignalSafeWriter out(file);
  int64_t now = FlightRecorder::now();
  std::array<const FlightRecorder *, kPrintedRanks> chosen = {};
  size_t count = 0;
  auto isChosen = [&](const FlightRecorder *recorder) {
    return std::find(chosen.begin(), chosen.begin() + count, recorder) !=
           chosen.begin() + count;
  };
  while (count < std::min(kPrintedRanks, list.count)) {
    const FlightRecorder *next = nullptr;
    for (size_t r = 0; r < list.count; ++r) {
      const FlightRecorder *other = list.all[r];
      if (isChosen(other))
        continue;
      bool isConcerned = count == 0 && other->rank == rank;
      if (!next || isConcerned || lastTime(*other) < lastTime(*next))
        next = other;
      if (isConcerned)
        break;
    }
    chosen[count++] = next;
  }
  out << "last events of " << int64_t(count) << " of " << int64_t(list.count)
      << (list.count == 1 ? " rank" : " ranks") << " of this process";
  if (*path)
    out << "; all kept ones are in '" << path << "', for Perfetto";
  out << "\n";
  for (size_t i = 0; i < count; ++i)
    printRank(out, *chosen[i], now);
  out.flush();
}

} // namespace rota

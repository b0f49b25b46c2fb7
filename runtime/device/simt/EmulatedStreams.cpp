// SPDX-License-Identifier: Apache-2.0
//
// Streams, and how events make them wait for each other.
#include "runtime/device/simt/EmulatedStreams.h"
#include "runtime/device/simt/DriverResults.h"

#include <fmt/format.h>

namespace rota::simt {

using cuda::Result;

EmulatedStreams::EmulatedStreams(uint64_t seed, StreamOrder &order)
    : random(seed), dispatcher(seed, order) {
  nullStream = std::make_shared<Stream>(dispatcher.open("the null stream"));
}

std::shared_ptr<EmulatedStreams::Stream>
EmulatedStreams::findStream(cuda::StreamHandle handle) const {
  return handle ? streams.find(handle) : nullStream;
}

Result EmulatedStreams::push(Stream &stream, StreamOperation operation) {
  return dispatcher.push(*stream.queue, std::move(operation))
             ? cuda::kSuccess
             : cuda::kLaunchFailed;
}

Result EmulatedStreams::refuse(const std::shared_ptr<Capture> &capture,
                               Result result) {
  if (!capture)
    return cuda::kSuccess;
  capture->invalid = true;
  return result;
}

Result EmulatedStreams::add(cuda::StreamHandle handle,
                            std::function<Run()> function,
                            std::function<bool()> isReady) {
  auto work = std::make_shared<const std::function<Run()>>(std::move(function));
  auto lock = dispatcher.lock();
  std::shared_ptr<Stream> stream = findStream(handle);
  if (!stream)
    return kInvalidHandle;
  if (!stream->capture) {
    StreamOperation operation{nullptr, (*work)(), nullptr};
    operation.isReady = std::move(isReady);
    return push(*stream, std::move(operation));
  }
  if (isReady)
    return refuse(stream->capture, cuda::kInvalidValue);
  if (Result result = enter(*stream->capture))
    return result;
  stream->capture->add(std::move(work), stream->last, stream->queue.get());
  return cuda::kSuccess;
}

Result EmulatedStreams::fail(Result result, std::string report) {
  auto lock = dispatcher.lock();
  dispatcher.fail(std::move(report));
  return result;
}

Result EmulatedStreams::createStream(cuda::StreamHandle *handle,
                                     unsigned flags) {
  if (flags != cuda::kNonBlockingStream)
    return cuda::kInvalidValue; // no order with the null stream is emulated
  auto stream = std::make_shared<Stream>(
      dispatcher.open(fmt::format("stream {}", ++streamCount)));
  auto lock = dispatcher.lock();
  *handle = streams.add(std::move(stream));
  return cuda::kSuccess;
}

Result EmulatedStreams::destroyStream(cuda::StreamHandle handle) {
  auto lock = dispatcher.lock();
  std::shared_ptr<Stream> stream = streams.find(handle);
  if (!stream)
    return kInvalidHandle;
  if (Result result = refuse(stream->capture, kCaptureUnsupported))
    return result;
  dispatcher.close(*stream->queue);
  streams.remove(handle);
  return cuda::kSuccess;
}

Result EmulatedStreams::synchronizeStream(cuda::StreamHandle handle) {
  auto lock = dispatcher.lock();
  std::shared_ptr<Stream> stream = findStream(handle);
  if (!stream)
    return kInvalidHandle;
  if (Result result = refuse(stream->capture, kCaptureUnsupported))
    return result;
  std::shared_ptr<StreamQueue> queue = stream->queue;
  uint64_t end = queue->asked;
  bool succeeded = dispatcher.wait(lock, [&] { return queue->done >= end; });
  dispatcher.hostWaited(dispatcher.streamOrder().now(queue->lane));
  return succeeded ? cuda::kSuccess : cuda::kLaunchFailed;
}

Result EmulatedStreams::waitEvent(cuda::StreamHandle handle,
                                  cuda::EventHandle eventHandle, unsigned) {
  auto lock = dispatcher.lock();
  std::shared_ptr<Stream> stream = findStream(handle);
  std::shared_ptr<Event> event = events.find(eventHandle);
  if (!stream || !event)
    return kInvalidHandle;
  if (event->capture)
    return join(*stream, *event);
  if (!event->record)
    return cuda::kSuccess;
  if (Result result = refuse(stream->capture, kCaptureIsolation))
    return result;
  return push(*stream, {event->record, nullptr, nullptr});
}

Result EmulatedStreams::createEvent(cuda::EventHandle *handle, unsigned flags) {
  if (flags != cuda::kTimingEvent && flags != cuda::kEventWithoutTiming)
    return cuda::kInvalidValue;
  auto lock = dispatcher.lock();
  *handle = events.add(
      std::make_shared<Event>(Event{flags == cuda::kTimingEvent, {}, {}, {}}));
  return cuda::kSuccess;
}

Result EmulatedStreams::destroyEvent(cuda::EventHandle handle) {
  auto lock = dispatcher.lock();
  return events.remove(handle) ? cuda::kSuccess : kInvalidHandle;
}

Result EmulatedStreams::recordEvent(cuda::EventHandle eventHandle,
                                    cuda::StreamHandle handle) {
  auto lock = dispatcher.lock();
  std::shared_ptr<Stream> stream = findStream(handle);
  std::shared_ptr<Event> event = events.find(eventHandle);
  if (!stream || !event)
    return kInvalidHandle;
  if (stream->capture)
    if (Result result = enter(*stream->capture))
      return result;
  event->capture = stream->capture;
  event->last = stream->last;
  event->record = nullptr;
  if (stream->capture)
    return cuda::kSuccess;
  auto record = std::make_shared<Record>();
  event->record = record;
  return push(*stream, {nullptr, nullptr, std::move(record)});
}

Result EmulatedStreams::queryEvent(cuda::EventHandle handle) {
  auto lock = dispatcher.lock();
  std::shared_ptr<Event> event = events.find(handle);
  if (!event)
    return kInvalidHandle;
  if (Result result = refuse(event->capture, kCapturedEvent))
    return result;
  if (event->record && !event->record->done)
    return cuda::kNotReady;
  if (event->record)
    dispatcher.hostWaited(event->record->clock);
  return cuda::kSuccess;
}

Result EmulatedStreams::synchronizeEvent(cuda::EventHandle handle) {
  auto lock = dispatcher.lock();
  std::shared_ptr<Event> event = events.find(handle);
  if (!event)
    return kInvalidHandle;
  if (Result result = refuse(event->capture, kCapturedEvent))
    return result;
  std::shared_ptr<const Record> record = event->record;
  bool succeeded =
      dispatcher.wait(lock, [&] { return !record || record->done; });
  if (record)
    dispatcher.hostWaited(record->clock);
  return succeeded ? cuda::kSuccess : cuda::kLaunchFailed;
}

/// Whether an event has what a time between events wants.
Result EmulatedStreams::checkTimed(const Event *event) {
  if (!event || !event->hasTime)
    return kInvalidHandle;
  if (event->capture)
    return kCapturedEvent;
  return event->record ? cuda::kSuccess : kInvalidHandle;
}

Result EmulatedStreams::elapsedTime(float *milliseconds,
                                    cuda::EventHandle beginHandle,
                                    cuda::EventHandle endHandle) {
  auto lock = dispatcher.lock();
  std::shared_ptr<Event> begin = events.find(beginHandle);
  std::shared_ptr<Event> end = events.find(endHandle);
  for (const auto &event : {begin, end})
    if (Result result = checkTimed(event.get()))
      return result;
  if (!begin->record->done || !end->record->done)
    return cuda::kNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(end->record->time -
                                                           begin->record->time)
                      .count();
  return cuda::kSuccess;
}

} // namespace rota::simt

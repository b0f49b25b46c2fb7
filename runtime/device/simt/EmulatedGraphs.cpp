// SPDX-License-Identifier: Apache-2.0
//
// The part of EmulatedStreams that captures graphs and launches them.
#include "runtime/device/simt/DriverResults.h"
#include "runtime/device/simt/EmulatedStreams.h"

#include <fmt/format.h>

namespace rota::simt {

using cuda::Result;

/// Whether the calling thread may capture work now.
Result EmulatedStreams::enter(Capture &capture) {
  if (capture.invalid)
    return kCaptureInvalidated;
  capture.threads.insert(std::this_thread::get_id());
  return cuda::kSuccess;
}

/// The stream waits for an event that was recorded in a capture.
Result EmulatedStreams::join(Stream &stream, const Event &event) {
  if (event.capture->ended)
    return kCapturedEvent;
  if (Result result = enter(*event.capture))
    return result;
  if (stream.capture && stream.capture != event.capture) {
    stream.capture->invalid = event.capture->invalid = true;
    return kCaptureMerge;
  }
  stream.capture = event.capture;
  stream.last.insert(event.last.begin(), event.last.end());
  return cuda::kSuccess;
}

bool EmulatedStreams::forbidsWaiting() {
  auto lock = dispatcher.lock();
  bool captures = false;
  for (const auto &[handle, stream] : streams)
    if (stream->capture &&
        stream->capture->threads.contains(std::this_thread::get_id()))
      captures = stream->capture->invalid = true;
  return captures;
}

Result EmulatedStreams::beginCapture(cuda::StreamHandle handle, int mode) {
  if (mode != cuda::kRelaxedCapture)
    return cuda::kInvalidValue; // the mode that is emulated
  auto lock = dispatcher.lock();
  if (!handle)
    return kCaptureUnsupported;
  std::shared_ptr<Stream> stream = streams.find(handle);
  if (!stream)
    return kInvalidHandle;
  if (stream->capture)
    return kIllegalState;
  stream->capture = std::make_shared<Capture>(Capture{handle});
  return enter(*stream->capture);
}

Result EmulatedStreams::captureStatus(cuda::StreamHandle handle, int *status) {
  auto lock = dispatcher.lock();
  std::shared_ptr<Stream> stream = streams.find(handle);
  if (!stream)
    return kInvalidHandle;
  constexpr int kActive = 1, kInvalidated = 2; // CUstreamCaptureStatus
  *status = !stream->capture           ? cuda::kNoCapture
            : stream->capture->invalid ? kInvalidated
                                       : kActive;
  return cuda::kSuccess;
}

Result EmulatedStreams::endCapture(cuda::StreamHandle handle,
                                   cuda::GraphHandle *graph) {
  auto lock = dispatcher.lock();
  *graph = nullptr;
  std::shared_ptr<Stream> origin = streams.find(handle);
  if (!origin)
    return kInvalidHandle;
  std::shared_ptr<Capture> capture = origin->capture;
  if (!capture)
    return kIllegalState;
  if (capture->origin != handle) {
    capture->invalid = true;
    return kCaptureUnmatched;
  }
  bool isJoined = capture->isJoined(origin->last);
  capture->ended = true;
  for (const auto &[other, stream] : streams)
    if (stream->capture == capture) {
      stream->capture = nullptr;
      stream->last.clear();
    }
  if (capture->invalid)
    return kCaptureInvalidated;
  if (!isJoined)
    return kCaptureUnjoined;
  *graph = graphs.add(std::make_shared<const CapturedGraph>(
      std::move(capture->graph), capture->lanes.size()));
  return cuda::kSuccess;
}

Result EmulatedStreams::instantiateGraph(cuda::GraphExecHandle *executable,
                                         cuda::GraphHandle handle,
                                         unsigned long long) {
  auto lock = dispatcher.lock();
  std::shared_ptr<const CapturedGraph> graph = graphs.find(handle);
  if (!graph)
    return kInvalidHandle;
  auto made = std::make_shared<GraphExecutable>(graph->graph);
  ++graphCount;
  for (size_t lane = 0; lane < graph->lanes; ++lane)
    made->lanes.push_back(dispatcher.streamOrder().makeLane(
        fmt::format("branch {} of graph {}", lane + 1, graphCount)));
  *executable = executables.add(std::move(made));
  return cuda::kSuccess;
}

/// The nodes become operations of the stream. The launches of one executable
/// follow each other, on whatever streams.
Result EmulatedStreams::launchGraph(cuda::GraphExecHandle handle,
                                    cuda::StreamHandle streamHandle) {
  auto lock = dispatcher.lock();
  std::shared_ptr<GraphExecutable> executable = executables.find(handle);
  std::shared_ptr<Stream> stream = findStream(streamHandle);
  if (!executable || !stream)
    return kInvalidHandle;
  // Graphs in graphs are not emulated.
  if (Result result = refuse(stream->capture, kCaptureUnsupported))
    return result;
  auto run = std::make_shared<GraphRun>(executable, dispatcher.streamOrder());
  StreamOperation begin{executable->latest, nullptr, nullptr};
  begin.leave = [run](Lane &lane) { run->begin(lane); };
  Result result = push(*stream, std::move(begin));
  for (size_t node : randomOrder(executable->graph, random)) {
    if (result != cuda::kSuccess)
      return result;
    StreamOperation operation{nullptr, (*executable->graph[node].work)(),
                              nullptr};
    operation.enter = [run, node]() -> Lane & { return run->enter(node); };
    operation.leave = [run, node](Lane &) { run->leave(node); };
    result = push(*stream, std::move(operation));
  }
  auto last = std::make_shared<Record>();
  executable->latest = last;
  StreamOperation end{nullptr, nullptr, std::move(last)};
  end.leave = [run](Lane &lane) { run->end(lane); };
  return result == cuda::kSuccess ? push(*stream, std::move(end)) : result;
}

Result EmulatedStreams::destroyGraphExec(cuda::GraphExecHandle executable) {
  auto lock = dispatcher.lock();
  return executables.remove(executable) ? cuda::kSuccess : kInvalidHandle;
}

Result EmulatedStreams::destroyGraph(cuda::GraphHandle graph) {
  auto lock = dispatcher.lock();
  return graphs.remove(graph) ? cuda::kSuccess : kInvalidHandle;
}

} // namespace rota::simt

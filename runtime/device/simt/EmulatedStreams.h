// SPDX-License-Identifier: Apache-2.0
//
// Streams, events and graphs of an emulated GPU as the driver API has them.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_EMULATEDSTREAMS_H
#define ROTA_RUNTIME_DEVICE_SIMT_EMULATEDSTREAMS_H

#include "runtime/device/simt/Capture.h"
#include "runtime/device/simt/Handles.h"

namespace rota::simt {

/// Any thread may call. Functions that return a Result are those of the driver
/// API, but add().
class EmulatedStreams {
public:
  EmulatedStreams(uint64_t seed, StreamOrder &order);

  /// Asks the stream for the work, or the graph that it captures. `isReady`:
  /// see HostWork.
  cuda::Result add(cuda::StreamHandle stream, std::function<Run()> work,
                   std::function<bool()> isReady = nullptr);
  /// The GPU fails with this report; `result` for the caller.
  cuda::Result fail(cuda::Result result, std::string report);
  /// Waits until all that was asked for is done. False on failure.
  bool drain() { return dispatcher.drain(); }
  /// Whether a call that may wait for the whole GPU is forbidden, since the
  /// thread captures. The capture is invalid then.
  bool forbidsWaiting();

  bool hasFailed() { return dispatcher.hasFailed(); }
  const char *failureReport() { return dispatcher.failureReport(); }

  cuda::Result createStream(cuda::StreamHandle *stream, unsigned flags);
  cuda::Result destroyStream(cuda::StreamHandle stream);
  cuda::Result synchronizeStream(cuda::StreamHandle stream);
  cuda::Result waitEvent(cuda::StreamHandle stream, cuda::EventHandle event,
                         unsigned flags);

  cuda::Result createEvent(cuda::EventHandle *event, unsigned flags);
  cuda::Result destroyEvent(cuda::EventHandle event);
  cuda::Result recordEvent(cuda::EventHandle event, cuda::StreamHandle stream);
  cuda::Result queryEvent(cuda::EventHandle event);
  cuda::Result synchronizeEvent(cuda::EventHandle event);
  cuda::Result elapsedTime(float *milliseconds, cuda::EventHandle beginHandle,
                           cuda::EventHandle endHandle);

  cuda::Result beginCapture(cuda::StreamHandle stream, int mode);
  cuda::Result captureStatus(cuda::StreamHandle stream, int *status);
  cuda::Result endCapture(cuda::StreamHandle stream, cuda::GraphHandle *graph);
  cuda::Result instantiateGraph(cuda::GraphExecHandle *executable,
                                cuda::GraphHandle graph,
                                unsigned long long flags);
  cuda::Result launchGraph(cuda::GraphExecHandle executable,
                           cuda::StreamHandle stream);
  cuda::Result destroyGraphExec(cuda::GraphExecHandle executable);
  cuda::Result destroyGraph(cuda::GraphHandle graph);

private:
  struct Stream {
    std::shared_ptr<StreamQueue> queue;
    std::shared_ptr<Capture> capture = nullptr; // null: work is done
    NodeSet last = {}; // nodes of the capture that the next node comes after
  };
  struct Event {
    bool hasTime;
    std::shared_ptr<const Record> record; // the latest; null: none
    std::shared_ptr<Capture> capture; // capture of the latest record, if any
    NodeSet last;                     // last nodes of the capture at the record
  };

  std::shared_ptr<Stream> findStream(cuda::StreamHandle handle) const;
  cuda::Result push(Stream &stream, StreamOperation operation);
  static cuda::Result enter(Capture &capture);
  cuda::Result join(Stream &stream, const Event &event);
  /// `result`, which ends the capture, if there is one.
  static cuda::Result refuse(const std::shared_ptr<Capture> &capture,
                             cuda::Result result);
  static cuda::Result checkTimed(const Event *event);

  // All guarded by the dispatcher's mutex.
  std::shared_ptr<Stream> nullStream;
  Handles<cuda::StreamHandle, Stream> streams;
  Handles<cuda::EventHandle, Event> events;
  struct CapturedGraph {
    Graph graph;
    size_t lanes;
  };
  Handles<cuda::GraphHandle, const CapturedGraph> graphs;
  Handles<cuda::GraphExecHandle, GraphExecutable> executables;
  uint64_t graphCount = 0; // made so far
  std::atomic<uint64_t> streamCount = 0;
  std::mt19937_64 random; // for graphs
  Dispatcher dispatcher;
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_EMULATEDSTREAMS_H

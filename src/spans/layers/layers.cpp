#include "spans/layers/layers.h"

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "model/activity/activity_codec.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::layers {
namespace {

struct Replay {
  std::optional<model::KernelRerun> kernel;  // none: preparation
  HostTime begin{};
  HostTime end{};
};

struct Replays {
  std::mutex mutex;  // guards what follows
  HostTime last{};
  std::vector<Replay> not_reported;
};

// Never destroyed: the tracer's thread sends while the process exits.
Replays& all() {
  static auto* only = new Replays;
  return *only;
}

}  // namespace

void begin_replay() {
  set_active(false);
  const std::scoped_lock lock(all().mutex);
  all().last = HostClock::now();
}

namespace {

void add(const std::optional<model::KernelRerun>& kernel) {
  const HostTime now = HostClock::now();
  const std::scoped_lock lock(all().mutex);
  all().not_reported.push_back({kernel, std::exchange(all().last, now), now});
}

}  // namespace

void replay_prepared() { add(std::nullopt); }

void replayed_kernel(const model::KernelRerun& loop) { add(loop); }

void end_replay() { set_active(true); }

void send_replays(model::ActivitySink& sink) {
  std::vector<Replay> replays;
  {
    const std::scoped_lock lock(all().mutex);
    replays.swap(all().not_reported);
  }
  if (replays.empty()) return;
  scopes::send(sink);
  for (const Replay& replay : replays) {
    model::ActivityEncoder encoder;
    if (replay.kernel) encoder.add(*replay.kernel);
    model::ActivityChunk chunk;
    chunk.kind = model::ChunkKind::kReplay;
    chunk.begin = replay.begin;
    chunk.end = replay.end;
    chunk.bytes = encoder.take();
    sink.add(chunk);
  }
}

}  // namespace jouleprof::layers

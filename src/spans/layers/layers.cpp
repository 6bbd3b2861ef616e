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
  std::uint32_t layer = model::kNone;
  std::uint64_t calls = 0;
  bool any = false;  // false: preparation
  std::optional<model::KernelRerun> kernel;
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

void add(std::uint32_t layer, std::uint64_t calls, bool any,
         std::optional<model::KernelRerun> kernel = std::nullopt) {
  const HostTime now = HostClock::now();
  const std::scoped_lock lock(all().mutex);
  all().not_reported.push_back({layer, calls, any, kernel, std::exchange(all().last, now), now});
}

}  // namespace

void replayed(std::uint32_t layer, std::uint64_t calls) {
  add(layer, calls, layer != model::kNone);
}

void replayed_kernel(const model::KernelRerun& loop) { add(model::kNone, 0, true, loop); }

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
    if (replay.kernel) {
      encoder.add(replay.kernel->entry());
    } else if (replay.any) {
      encoder.add(model::LayerEntry{replay.layer, model::Phase::kForward, replay.calls,
                                    static_cast<std::uint64_t>((replay.end - replay.begin).count()),
                                    0});
    }
    model::ActivityChunk chunk;
    chunk.kind = model::ChunkKind::kReplay;
    chunk.begin = replay.begin;
    chunk.end = replay.end;
    chunk.bytes = encoder.take();
    sink.add(chunk);
  }
}

}  // namespace jouleprof::layers

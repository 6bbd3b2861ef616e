#include "report/html/span_track.h"

#include <algorithm>
#include <map>
#include <vector>

#include "model/activity/activity_codec.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

using model::Window;

constexpr std::size_t kMostLanes = 8;

struct Block {
  std::size_t lane = 0;
  int name = 0;
  HostTime begin{};
  HostTime end{};
  std::vector<const Window*> windows;  // that it stands for
};

// Windows in order of time; at the same time the longest first, so that it is above those within.
std::vector<const Window*> ordered(const model::Recording& recording,
                                   const analysis::PartSpan& span) {
  std::vector<const Window*> windows;
  for (const Window& w : recording.windows) {
    if (span.contains(w.begin) && w.end >= w.begin) windows.push_back(&w);
  }
  std::stable_sort(windows.begin(), windows.end(), [](const Window* a, const Window* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
  });
  return windows;
}

class Lanes {
 public:
  explicit Lanes(Duration shortest) : shortest_(shortest) {}

  // The first lane that is free; the last lane takes what has no other.
  void add(const Window& window, int name) {
    std::size_t lane = 0;
    while (lane < ends_.size() && ends_[lane] > window.begin) ++lane;
    lane = std::min(lane, kMostLanes - 1);
    if (lane >= ends_.size()) {
      ends_.emplace_back();
      last_.push_back(blocks_.size());
    } else if (joins(blocks_[last_[lane]], window)) {
      Block& block = blocks_[last_[lane]];
      block.end = std::max(block.end, window.end);
      block.windows.push_back(&window);
      if (block.name != name) block.name = -1;
      ends_[lane] = std::max(ends_[lane], window.end);
      return;
    }
    ends_[lane] = std::max(ends_[lane], window.end);
    last_[lane] = blocks_.size();
    blocks_.push_back({lane, name, window.begin, window.end, {&window}});
  }

  const std::vector<Block>& blocks() const { return blocks_; }
  std::size_t lanes() const { return ends_.size(); }

 private:
  // Both too short to be drawn, and close.
  bool joins(const Block& block, const Window& window) const {
    const bool brief = block.windows.size() > 1 || block.end - block.begin < shortest_;
    return brief && window.end - window.begin < shortest_ && window.begin - block.end < shortest_ &&
           window.end - block.begin < 4 * shortest_;
  }

  Duration shortest_;
  std::vector<HostTime> ends_;
  std::vector<std::size_t> last_;  // block of each lane
  std::vector<Block> blocks_;
};

// Of several windows the sum of the errors: an upper bound.
Json energies_of(const analysis::Run& run, const Block& block) {
  if (block.name < 0) return nullptr;
  Json energies = Json::array();
  for (std::size_t d = 0; d < run.recording().domains.size(); ++d) {
    const auto id = run.recording().domains[d].id;
    Energy sum;
    Energy error;
    const bool known =
        std::all_of(block.windows.begin(), block.windows.end(), [&](const Window* window) {
          const auto energy = run.energy(d, *window);
          if (!energy || !window->devices.contains(id)) return false;
          sum += energy->energy;
          error += energy->error;
          return true;
        });
    if (!known) continue;
    energies.push_back({static_cast<std::uint32_t>(id), sum.microjoules(), error.microjoules()});
  }
  return energies;
}

Json time_json(Duration t) { return decimal(fixed_decimal(seconds(t), 6)); }

}  // namespace

Json window_track(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin,
                  std::size_t blocks) {
  const auto windows = ordered(run.recording(), span);
  std::map<std::string_view, int> numbers;
  Json names = Json::array();
  const bool all = windows.size() <= blocks;
  Lanes lanes(all ? Duration{} : (span.end - span.begin) / static_cast<std::int64_t>(blocks));
  for (const Window* window : windows) {
    const auto [at, is_new] = numbers.try_emplace(window->name, static_cast<int>(numbers.size()));
    if (is_new) names.push_back(window->name);
    lanes.add(*window, at->second);
  }
  Json list = Json::array();
  for (const Block& block : lanes.blocks()) {
    Json& one = list.emplace_back();
    one = {block.lane, block.name, time_json(block.begin - origin),
           time_json(block.end - block.begin), block.windows.size()};
    one.push_back(energies_of(run, block));
    if (block.windows.size() < 2) continue;
    Duration total{};
    for (const Window* window : block.windows) total += window->end - window->begin;
    one.push_back(time_json(total));
  }
  Json track = Json::object();
  track["lanes"] = lanes.lanes();
  track["names"] = std::move(names);
  track["blocks"] = std::move(list);
  return track;
}

Result<Json> replay_track(const analysis::Run& run, const analysis::PartSpan& span,
                          HostTime origin) {
  Json track = Json::array();
  for (const auto& trace : run.recording().traces) {
    for (const auto& chunk : trace.chunks) {
      if (chunk.kind != model::ChunkKind::kReplay || !span.contains(chunk.begin)) continue;
      model::ActivityDecoder decoder(chunk.bytes);
      model::LayerEntry entry;
      const bool any = decoder.next(entry);
      if (!decoder.ok() || (any && entry.layer >= trace.layers.size())) {
        return fail(Errc::kCorrupt, "the recording's activity chunks are damaged");
      }
      track.push_back({time_json(chunk.begin - origin), time_json(chunk.end - chunk.begin),
                       any ? Json(trace.layers[entry.layer].name) : Json(nullptr)});
    }
  }
  return track;
}

}  // namespace jouleprof::report

#include "meters/control/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "meters/nvml/api/nvml_api.h"
#include "model/sweep.h"

namespace jouleprof::meters::control {
namespace {

using Words = model::KnobWords;
using model::kKnobWords;

const Words& words(Knob knob) { return kKnobWords[static_cast<std::size_t>(knob)]; }

template <typename Matches>
std::optional<Knob> find(const Matches& matches) {
  const auto at = std::ranges::find_if(kKnobWords, matches);
  if (at == kKnobWords.end()) return std::nullopt;
  return static_cast<Knob>(at - kKnobWords.begin());
}

}  // namespace

std::optional<Knob> parse_knob(std::string_view word) {
  return find([&](const Words& w) { return w.word == word; });
}
std::optional<Knob> knob_of_label(std::string_view label) {
  return find([&](const Words& w) { return w.label == label; });
}
std::string_view word_of(Knob knob) { return words(knob).word; }
std::string_view name_of(Knob knob) { return words(knob).name; }
std::string_view unit_of(Knob knob) { return words(knob).unit; }
std::string_view label_of(Knob knob) { return words(knob).label; }

double KnobRange::nearest(double value) const {
  if (steps.empty()) return std::clamp(std::round(value), std::ceil(least), std::floor(most));
  return *std::ranges::min_element(
      steps, [value](double a, double b) { return std::abs(a - value) < std::abs(b - value); });
}

KnobRange KnobRange::common(const KnobRange& other) const {
  KnobRange both{std::max(least, other.least), std::min(most, other.most), {}};
  if (steps.empty() || other.steps.empty()) {
    for (const double step : steps.empty() ? other.steps : steps) {
      if (step >= both.least && step <= both.most) both.steps.push_back(step);
    }
    return both;
  }
  std::set_intersection(steps.begin(), steps.end(), other.steps.begin(), other.steps.end(),
                        std::back_inserter(both.steps));
  if (both.steps.empty()) return {1, 0, {}};
  both.least = both.steps.front();
  both.most = both.steps.back();
  return both;
}

using abi::Return;

namespace {

template <typename F>
Result<void> check_has(F* function, const char* name) {
  if (function != nullptr) return {};
  return fail(Errc::kUnsupported, fmt::format("this driver has no {}; a newer one may", name));
}

Result<void> check(const nvml::NvmlApi& api, const std::string& what, Return code) {
  if (code == Return::kSuccess) return {};
  Error error = nvml::nvml_error(api, what, code);
  if (code == Return::kInvalidArgument) error.code = Errc::kInvalidArgument;
  return tl::unexpected(std::move(error));
}

// A list whose length the driver gives at the first call.
template <typename Call>
Result<std::vector<unsigned>> list(const nvml::NvmlApi& api, const char* name, const Call& call) {
  unsigned count = 0;
  Return code = call(&count, nullptr);
  std::vector<unsigned> values;
  // The list may grow between two calls.
  for (int i = 0; i < 5 && code == Return::kInsufficientSize; ++i) {
    values.resize(count);
    code = call(&count, values.data());
  }
  if (auto ok = check(api, name, code); !ok) return tl::unexpected(ok.error());
  values.resize(std::min<std::size_t>(values.size(), count));
  return values;
}

// Of clocks, at least one.
KnobRange range_of(const std::vector<unsigned>& clocks) {
  KnobRange range;
  range.steps.assign(clocks.begin(), clocks.end());
  std::ranges::sort(range.steps);
  range.least = range.steps.front();
  range.most = range.steps.back();
  return range;
}

}  // namespace

Result<KnobRange> Board::range(Knob knob) const {
  if (knob == Knob::kPowerLimit) {
    constexpr const char* kName = "nvmlDeviceGetPowerManagementLimitConstraints";
    if (auto ok = check_has(api_.limit_range, kName); !ok) return tl::unexpected(ok.error());
    unsigned least = 0;
    unsigned most = 0;
    const Return code = api_.limit_range(gpu_.handle, &least, &most);
    if (auto ok = check(api_, fmt::format("{}: {}", device(), kName), code); !ok) {
      return tl::unexpected(ok.error());
    }
    return KnobRange{least * 1e-3, most * 1e-3, {}};
  }
  constexpr const char* kName = "nvmlDeviceGetSupportedGraphicsClocks";
  if (auto ok = check_has(api_.memory_clocks, kName); !ok) return tl::unexpected(ok.error());
  if (auto ok = check_has(api_.graphics_clocks, kName); !ok) return tl::unexpected(ok.error());
  const auto memory =
      list(api_, "nvmlDeviceGetSupportedMemoryClocks",
           [&](unsigned* n, unsigned* to) { return api_.memory_clocks(gpu_.handle, n, to); });
  if (!memory) return forward_error(memory);
  if (memory->empty()) {
    return fail(Errc::kUnsupported, fmt::format("{} lists no clocks to choose from", device()));
  }
  if (knob == Knob::kMemoryClock) return range_of(*memory);
  const unsigned highest = *std::ranges::max_element(*memory);
  const auto clocks = list(api_, kName, [&](unsigned* n, unsigned* to) {
    return api_.graphics_clocks(gpu_.handle, highest, n, to);
  });
  if (!clocks) return forward_error(clocks);
  if (clocks->empty()) {
    return fail(Errc::kUnsupported, fmt::format("{} lists no clocks to choose from", device()));
  }
  return range_of(*clocks);
}

Result<std::optional<double>> Board::requested(Knob knob) const {
  if (knob != Knob::kPowerLimit) return std::optional<double>{};
  constexpr const char* kName = "nvmlDeviceGetPowerManagementLimit";
  if (auto ok = check_has(api_.requested_limit, kName); !ok) return tl::unexpected(ok.error());
  unsigned mw = 0;
  const Return code = api_.requested_limit(gpu_.handle, &mw);
  if (auto ok = check(api_, fmt::format("{}: {}", device(), kName), code); !ok) {
    return tl::unexpected(ok.error());
  }
  return std::optional(mw * 1e-3);
}

std::optional<double> Board::enforced_limit() const {
  unsigned mw = 0;
  if (api_.power_limit == nullptr || api_.power_limit(gpu_.handle, &mw) != Return::kSuccess) {
    return std::nullopt;
  }
  return mw * 1e-3;
}

Result<void> Board::set(Knob knob, double value) const {
  const auto what = [&](const char* name) {
    return fmt::format("{}: {} to {:g} {}", device(), name, value, unit_of(knob));
  };
  if (knob == Knob::kPowerLimit) {
    constexpr const char* kName = "nvmlDeviceSetPowerManagementLimit";
    if (auto ok = check_has(api_.set_limit, kName); !ok) return ok;
    return check(api_, what(kName),
                 api_.set_limit(gpu_.handle, static_cast<unsigned>(std::lround(value * 1e3))));
  }
  const bool is_sm = knob == Knob::kSmClock;
  const char* name = is_sm ? "nvmlDeviceSetGpuLockedClocks" : "nvmlDeviceSetMemoryLockedClocks";
  auto* const lock = is_sm ? api_.lock_clocks : api_.lock_memory_clocks;
  if (auto ok = check_has(lock, name); !ok) return ok;
  const auto mhz = static_cast<unsigned>(std::lround(value));
  return check(api_, what(name), lock(gpu_.handle, mhz, mhz));
}

Result<void> Board::unlock(Knob clock) const {
  const bool is_sm = clock == Knob::kSmClock;
  const char* name = is_sm ? "nvmlDeviceResetGpuLockedClocks" : "nvmlDeviceResetMemoryLockedClocks";
  auto* const unlock = is_sm ? api_.unlock_clocks : api_.unlock_memory_clocks;
  if (auto ok = check_has(unlock, name); !ok) return ok;
  return check(api_, fmt::format("{}: {}", device(), name), unlock(gpu_.handle));
}

std::optional<double> Board::celsius() const {
  unsigned celsius = 0;
  if (api_.temperature == nullptr ||
      api_.temperature(gpu_.handle, abi::TemperatureSensor::kGpu, &celsius) != Return::kSuccess) {
    return std::nullopt;
  }
  return celsius;
}

std::vector<unsigned> Board::processes() const {
  std::array<abi::ProcessInfo, 64> found{};
  auto count = static_cast<unsigned>(found.size());
  if (api_.compute_processes == nullptr ||
      api_.compute_processes(gpu_.handle, &count, found.data()) != Return::kSuccess) {
    return {};
  }
  std::vector<unsigned> pids;
  for (unsigned i = 0; i < count && i < found.size(); ++i) pids.push_back(found[i].pid);
  return pids;
}

std::optional<bool> Board::is_persistent() const {
  auto mode = abi::EnableState::kDisabled;
  if (api_.persistence == nullptr || api_.persistence(gpu_.handle, &mode) != Return::kSuccess) {
    return std::nullopt;
  }
  return mode == abi::EnableState::kEnabled;
}

Result<NvmlSession> NvmlSession::open(const std::string& library) {
  auto api = nvml::open_nvml(library);
  if (!api) return forward_error(api);
  return NvmlSession(std::move(*api));
}

Result<std::vector<Board>> NvmlSession::boards(const std::vector<std::string>& wanted) const {
  auto listed = gpus();
  if (!listed) return forward_error(listed);
  auto selected = nvml::select_gpus(std::move(*listed), wanted);
  if (!selected) return forward_error(selected);
  std::vector<Board> boards;
  for (auto& gpu : *selected) {
    if (gpu.error) return tl::unexpected(*gpu.error);
    boards.emplace_back(*api_, std::move(gpu));
  }
  return boards;
}

}  // namespace jouleprof::meters::control

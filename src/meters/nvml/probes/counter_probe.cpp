#include "meters/nvml/probes/counter_probe.h"

#include <chrono>

#include "meters/nvml/api/nvml_error.h"
#include "meters/nvml/api/nvml_value.h"

namespace jouleprof::meters::nvml {

using namespace std::chrono_literals;

namespace {

constexpr const char* kName = "nvmlDeviceGetTotalEnergyConsumption";
// A device that is on draws power: a counter at rest for this long and 20 updates is frozen.
constexpr Duration kFrozen = 2s;

}  // namespace

Result<Energy> read_total_energy(const NvmlApi& api, abi::Device device, abi::Return& code) {
  unsigned long long mj = 0;
  code =
      api.total_energy != nullptr ? api.total_energy(device, &mj) : abi::Return::kFunctionNotFound;
  if (code != abi::Return::kSuccess) return tl::unexpected(nvml_error(api, kName, code));
  // Above 2^63 microjoules nothing fits: 9.2 TJ, no board's lifetime.
  if (is_sentinel(mj) || mj > 9'000'000'000'000'000ULL) {
    return fail(Errc::kUnavailable, std::string(kName) + ": the driver returned its no-value mark");
  }
  return Energy::millijoules(static_cast<std::int64_t>(mj));
}

HostTime CounterProbe::read(model::Readings& out) {
  const HostTime now = clock_.now().host;
  const bool is_early = due_ && now + 1ms < *due_;
  const bool has_phase = is_early && wait_for_update(now);
  due_ = read_once(out);
  if (is_early && !has_phase) read_until_update(out);
  return *due_;
}

// Past an update that is near `now`. False where the phase of the updates is not known.
bool CounterProbe::wait_for_update(HostTime now) {
  // An update can be seen late, and a read takes some time itself.
  const auto update = schedule_.edges().next_after(now - plan_.refresh / 5);
  if (!update) return false;
  if (*update < now + plan_.refresh / 4) clock_.sleep(*update + plan_.refresh / 2 - now);
  return true;
}

void CounterProbe::read_until_update(model::Readings& out) {
  if (!last_) return;
  const Energy first = last_->total;
  for (Duration waited{}; last_ && waited <= plan_.refresh && last_->total == first;
       waited += kDenseSpacing) {
    clock_.sleep(kDenseSpacing);
    due_ = read_once(out);
  }
}

HostTime CounterProbe::read_once(model::Readings& out) {
  const HostTime before = clock_.now().host;
  abi::Return code{};
  auto total = read_total_energy(api_, device_, code);
  const HostTime after = clock_.now().host;
  if (!total) {
    state_.failed(sensor_, after, std::move(total.error()), out);
    if (is_lost(code)) {
      schedule_.restart(after + kLostRetry);
      last_.reset();
      return after + kLostRetry;
    }
    return after + schedule_.period();
  }
  out.counters.push_back({sensor_, before, after, *total});
  if (!last_ || *total != last_->total) {
    moved_ = after;
    state_.succeeded();
  } else if (after - moved_ > kFrozen && after - moved_ > plan_.refresh * 20) {
    state_.failed(sensor_, after,
                  {Errc::kUnavailable, std::string(kName) + ": the counter has stopped counting"},
                  out);
  }
  std::optional<HostTime> changed_since;
  if (last_ && *total < last_->total) {
    schedule_.restart(after);
  } else if (last_ && *total > last_->total) {
    changed_since = last_->before;
  }
  last_ = {sensor_, before, after, *total};
  return schedule_.next(before, after, changed_since);
}

}  // namespace jouleprof::meters::nvml

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/median.h"
#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/probes/probes.h"

namespace jouleprof::meters::nvml {
namespace {

using namespace std::chrono_literals;

FieldAnswer power_usage(const NvmlApi& api, abi::Device device) {
  if (api.power_usage == nullptr) return {abi::Return::kFunctionNotFound, std::nullopt};
  unsigned mw = 0;
  const auto code = api.power_usage(device, &mw);
  return {code, number(abi::ValueType::kUnsignedInt, {.ui = mw})};
}

// Reuses `buffer` and `answers`, which a poll keeps.
void fill(const NvmlApi& api, abi::Device device, const std::vector<Field>& fields,
          std::vector<abi::FieldValue>& buffer, std::vector<FieldAnswer>& answers) {
  buffer.clear();
  for (const auto& field : fields) {
    if (field.id == kPowerUsageCall) continue;
    abi::FieldValue value{};
    value.field_id = field.id;
    value.scope_id = field.scope;
    value.nvml_return = abi::Return::kUnknown;
    buffer.push_back(value);
  }
  auto call = abi::Return::kSuccess;
  if (!buffer.empty()) {
    call = api.field_values == nullptr
               ? abi::Return::kFunctionNotFound
               : api.field_values(device, static_cast<int>(buffer.size()), buffer.data());
  }
  answers.clear();
  auto value = buffer.begin();
  for (const auto& field : fields) {
    if (field.id == kPowerUsageCall) {
      answers.push_back(power_usage(api, device));
      continue;
    }
    const auto code = call == abi::Return::kSuccess ? value->nvml_return : call;
    std::optional<double> v;
    if (code == abi::Return::kSuccess) v = number(value->value_type, value->value);
    answers.push_back({code, v});
    ++value;
  }
}

constexpr const char* kName = "nvmlDeviceGetSamples";
// The wall clock is slewed by less than this between two reads; more is a step.
constexpr Duration kSlew = 5ms;

Duration stamp_time(std::uint64_t microseconds) {
  return std::chrono::microseconds(static_cast<std::int64_t>(microseconds));
}

// The driver's stamps are positive and, in nanoseconds, fit 64 bits.
bool usable(std::uint64_t stamp) { return stamp > 0 && stamp < 9'000'000'000'000'000ULL; }

}  // namespace

std::optional<Duration> RingContent::refresh() const {
  if (samples.size() < 8) return std::nullopt;
  std::vector<std::uint64_t> stamps;
  for (const auto& s : samples) stamps.push_back(s.timestamp);
  std::ranges::sort(stamps);
  std::vector<std::uint64_t> steps;
  for (std::size_t i = 1; i < stamps.size(); ++i) steps.push_back(stamps[i] - stamps[i - 1]);
  const auto step = upper_median(std::move(steps));
  // Rings of tens of milliseconds are known; anything far off is no period.
  if (step < 1000 || step > 2'000'000) return std::nullopt;
  return stamp_time(step);
}

abi::Return read_ring(const NvmlApi& api, abi::Device device, abi::SamplingType type,
                      RingContent& ring) {
  if (api.samples == nullptr) return abi::Return::kFunctionNotFound;
  if (ring.capacity == 0) {
    const auto code = api.samples(device, type, 0, &ring.value_type, &ring.capacity, nullptr);
    if (code != abi::Return::kSuccess) return code;
  }
  unsigned count = ring.capacity;
  ring.samples.resize(count);
  auto code = abi::Return::kNotFound;
  if (count > 0) code = api.samples(device, type, 0, &ring.value_type, &count, ring.samples.data());
  if (code != abi::Return::kSuccess) count = 0;
  ring.samples.resize(std::min<std::size_t>(count, ring.samples.size()));
  std::erase_if(ring.samples, [](const abi::Sample& s) { return !usable(s.timestamp); });
  if (code == abi::Return::kInsufficientSize) ring.capacity = 0;  // it has grown: ask anew
  if (code == abi::Return::kNotFound) return abi::Return::kNoData;
  if (code == abi::Return::kSuccess && ring.samples.empty()) return abi::Return::kNoData;
  return code;
}

RingProbe::RingProbe(const NvmlApi& api, abi::Device device, abi::SamplingType type,
                     model::SensorId sensor, RingContent known, Duration refresh, Duration period,
                     const NvmlClock& clock)
    : api_(api),
      device_(device),
      type_(type),
      sensor_(sensor),
      refresh_(refresh),
      period_(period),
      clock_(clock),
      ring_(std::move(known)),
      last_read_(clock.now()),
      newest_(last_read_.host - refresh) {
  remember();
  if (!seen_.empty()) {
    const RealTime newest{stamp_time(seen_.back())};
    newest_ = std::min(last_read_.host, last_read_.host + (newest - last_read_.real));
  }
}

void RingProbe::remember() {
  seen_.clear();
  for (const auto& s : ring_.samples) seen_.push_back(s.timestamp);
  std::ranges::sort(seen_);
}

HostTime RingProbe::read(model::Readings& out) {
  const auto code = read_ring(api_, device_, type_, ring_);
  const ClockPoint now = clock_.now();  // after the call: no stamp is later
  if (code != abi::Return::kSuccess) {
    state_.failed(sensor_, now.host, nvml_error(api_, kName, code), out);
    return now.host + (is_lost(code) ? kLostRetry : period_);
  }
  take(now, out);
  remember();
  last_read_ = now;
  first_ = false;
  return now.host + period_;
}

// Where a sample belongs that came between the last read and this one; absent when unsure.
std::optional<HostTime> RingProbe::place(std::uint64_t stamp, const ClockPoint& now) const {
  const RealTime real{stamp_time(stamp)};
  const auto fits = [&](HostTime t) { return t > newest_ && t <= now.host + kSlew; };
  const HostTime by_now = now.host + (real - now.real);
  const Duration step = (now.real - last_read_.real) - (now.host - last_read_.host);
  if (std::chrono::abs(step) <= kSlew) {
    return fits(by_now) ? std::optional(by_now) : std::nullopt;
  }
  const HostTime by_last = last_read_.host + (real - last_read_.real);
  if (fits(by_now) == fits(by_last)) return std::nullopt;
  return fits(by_now) ? by_now : by_last;
}

void RingProbe::take(const ClockPoint& now, model::Readings& out) {
  fresh_.clear();
  std::size_t unplaced = 0;
  std::size_t without_value = 0;
  for (const auto& sample : ring_.samples) {
    if (std::ranges::binary_search(seen_, sample.timestamp)) continue;
    const auto at = place(sample.timestamp, now);
    if (!at) {
      ++unplaced;
      continue;
    }
    auto power = power_from(kName, number(ring_.value_type, sample.value));
    if (!power) {
      ++without_value;
      state_.failed(sensor_, *at, std::move(power.error()), out);
      continue;
    }
    fresh_.push_back({sensor_, *at, *power});
  }
  std::ranges::sort(fresh_, [](const auto& a, const auto& b) { return a.at < b.at; });
  if (without_value == 0) finish(unplaced, now, out);
  if (!fresh_.empty()) newest_ = fresh_.back().at;
  out.powers.insert(out.powers.end(), fresh_.begin(), fresh_.end());
}

// Reports what a read with good values missed.
void RingProbe::finish(std::size_t unplaced, const ClockPoint& now, model::Readings& out) {
  const auto report = [&](HostTime at, std::string text) {
    out.failures.push_back({sensor_, at, {Errc::kUnavailable, std::move(text)}});
  };
  if (unplaced > 0) {
    report(now.host, fmt::format("{}: {} samples left out because their stamps do not fit the "
                                 "clock; was the wall clock set?",
                                 kName, unplaced));
  }
  if (fresh_.empty()) {
    if (now.host - newest_ > std::max<Duration>(refresh_ * 20, 1s)) {
      state_.failed(sensor_, now.host,
                    {Errc::kUnavailable, fmt::format("{}: no new samples come any more", kName)},
                    out);
    }
    return;
  }
  state_.succeeded();
  // All samples are new, and some are missing before them: those were overwritten unread.
  const Duration missing = fresh_.front().at - newest_;
  if (!first_ && fresh_.size() == ring_.samples.size() && missing > refresh_ * 5) {
    report(fresh_.front().at,
           fmt::format("{}: read too late, samples of {:.1f} s are lost", kName, seconds(missing)));
  }
}

std::string name_of(const Field& field) {
  std::string name;
  switch (field.id) {
    case kPowerUsageCall:
      return "nvmlDeviceGetPowerUsage";
    case abi::kFieldPowerAverage:
      name = "NVML_FI_DEV_POWER_AVERAGE";
      break;
    case abi::kFieldPowerInstant:
      name = "NVML_FI_DEV_POWER_INSTANT";
      break;
    default:
      name = fmt::format("NVML field {}", field.id);
  }
  if (field.scope == abi::kScopeModule) name += " (module)";
  if (field.scope == abi::kScopeMemory) name += " (memory)";
  return name;
}

std::vector<FieldAnswer> read_fields(const NvmlApi& api, abi::Device device,
                                     const std::vector<Field>& fields) {
  std::vector<abi::FieldValue> buffer;
  std::vector<FieldAnswer> answers;
  fill(api, device, fields, buffer, answers);
  return answers;
}

void FieldPoll::add(model::SensorId sensor, const Field& field, model::SensorKind kind) {
  items_.push_back({sensor, field, kind, name_of(field), {}, false});
  fields_.push_back(field);
}

abi::Return FieldPoll::read(model::Readings& out) {
  if (items_.empty()) return abi::Return::kSuccess;
  const HostTime before = clock_.now().host;
  fill(api_, device_, fields_, buffer_, answers_);
  const HostTime after = clock_.now().host;
  const HostTime at = before + (after - before) / 2;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (is_lost(answers_[i].code)) {
      fail(answers_[i].code, at, out);
      return answers_[i].code;
    }
    take(items_[i], answers_[i].code, answers_[i].value, at, out);
  }
  if (std::erase_if(items_, [](const Item& item) { return item.dropped; }) > 0) {
    fields_.clear();
    for (const auto& item : items_) fields_.push_back(item.field);
  }
  return abi::Return::kSuccess;
}

void FieldPoll::fail(abi::Return code, HostTime at, model::Readings& out) {
  for (auto& item : items_) take(item, code, std::nullopt, at, out);
}

void FieldPoll::take(Item& item, abi::Return code, std::optional<double> value, HostTime at,
                     model::Readings& out) {
  const bool gauge = item.kind == model::SensorKind::kGauge;
  if (code != abi::Return::kSuccess) {
    item.dropped = gauge && is_unsupported(code);
    if (!item.dropped) item.state.failed(item.sensor, at, nvml_error(api_, item.name, code), out);
    return;
  }
  if (gauge && value) {
    item.state.succeeded();
    out.gauges.push_back({item.sensor, at, *value});
    return;
  }
  auto power = power_from(item.name, value);  // a gauge without a value ends here too
  if (!power) {
    item.state.failed(item.sensor, at, std::move(power.error()), out);
    return;
  }
  item.state.succeeded();
  out.powers.push_back({item.sensor, at, *power});
}

HostTime PowerPollProbe::read(model::Readings& out) {
  const HostTime begin = clock_.now().host;
  return begin + (is_lost(poll_.read(out)) ? kLostRetry : period_);
}

}  // namespace jouleprof::meters::nvml

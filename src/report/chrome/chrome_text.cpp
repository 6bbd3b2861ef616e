#include "report/chrome/chrome_text.h"

#include <algorithm>
#include <cstdlib>

#include "report/json/json_text.h"

namespace jouleprof::report {
namespace {

constexpr std::size_t kBlock = 64 * 1024;

}  // namespace

std::string chrome_string(std::string_view text) { return write_json(Json(text), 0); }

std::string chrome_time(Duration t) {
  const std::int64_t n = t.count();
  return fmt::format("{}{}.{:03}", n < 0 ? "-" : "", std::abs(n / 1000), std::abs(n % 1000));
}

std::string chrome_energy(const JoulesRange& energy) {
  const auto from = to_string(energy.provenance);
  if (energy.resolved == 0) {
    if (!(energy.high > 0)) return {};
    return fmt::format(R"--("energy high (J)": {:.6g}, "provenance": "{}")--", energy.high, from);
  }
  return fmt::format(
      R"--("energy (J)": {:.6g}, "energy low (J)": {:.6g}, "energy high (J)": {:.6g}, )--"
      R"--("provenance": "{}")--",
      energy.joules, energy.low, energy.high, from);
}

std::vector<std::string> chrome_power(std::string_view name, const model::PowerStep& step) {
  std::vector<std::string> out;
  const auto add = [&](std::string_view which, double watts) {
    out.push_back(fmt::format(R"("name": {}, "args": {{"watts": {:.6g}}})",
                              chrome_string(std::string(name).append(which)), watts));
  };
  add("", step.power.watts());
  if (step.error) {
    add(kChromeLow, std::max((step.power - *step.error).watts(), 0.0));
    add(kChromeHigh, (step.power + *step.error).watts());
  }
  return out;
}

void ChromeSink::name(std::string_view what, std::uint32_t pid, std::uint32_t tid,
                      std::string_view name, int place) {
  (*this)(R"({{"ph": "M", "name": "{}_name", "pid": {}, "tid": {}, "args": {{"name": {}}}}})", what,
          pid, tid, chrome_string(name));
  (*this)(
      R"({{"ph": "M", "name": "{}_sort_index", "pid": {}, "tid": {}, "args": {{"sort_index": {}}}}})",
      what, pid, tid, place);
}

void ChromeSink::next() {
  if (text_.size() >= kBlock) flush();
  text_ += std::exchange(first_, false) ? "\n" : ",\n";
}

void ChromeSink::flush() {
  out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
  text_.clear();
}

JoulesRange& JoulesRange::operator+=(const JoulesRange& other) {
  joules += other.joules;
  low += other.low;
  high += other.high;
  resolved += other.resolved;
  provenance = model::combine(provenance, other.provenance);
  return *this;
}

JoulesRange JoulesRange::operator-(const JoulesRange& other) const {
  return {joules - other.joules, low - other.low, high - other.high, resolved - other.resolved,
          provenance};
}

JoulesRange launch_energy(const model::ActivityRow& row, Duration duration, Duration total) {
  if (total <= Duration::zero()) return {};
  const double part = seconds(duration) / seconds(total);
  return {row.energy->energy.joules() * part, row.energy->low().joules() * part,
          row.energy->high().joules() * part, row.resolvable ? 1 : 0, row.energy->provenance};
}

KernelRows::KernelRows(const model::ActivityProfile& profile) : profile_(profile) {
  for (std::uint32_t i = 0; i < profile.by_kernel.size(); ++i) {
    const auto& kernel = profile.by_kernel[i].kernel;
    if (kernel) by_name_[kernel->name].push_back(i);
  }
}

std::uint32_t KernelRows::row_of(const model::KernelClass& kernel) const {
  const auto found = by_name_.find(kernel.name);
  if (found == by_name_.end()) return model::kNone;
  for (const std::uint32_t i : found->second) {
    if (*profile_.by_kernel[i].kernel == kernel) return i;
  }
  return model::kNone;
}

}  // namespace jouleprof::report

#include "importers/aipowermeter/experiment_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 13> kRead{"per_process_mem_use_abs",
                                                 "mem_use_abs",
                                                 "per_process_cpu_uses",
                                                 "cpu_uses",
                                                 "per_process_cpu_power",
                                                 "per_process_dram_power",
                                                 "per_gpu_attributable_power",
                                                 "per_gpu_per_pid_utilization_absolute",
                                                 "per_gpu_attributable_mem_use",
                                                 "per_gpu_power_draw",
                                                 "per_gpu_nvidia_power",
                                                 "nvidia_draw_absolute",
                                                 "nvidia_power"};
constexpr std::array<std::string_view, 5> kDerived{
    "per_process_mem_use_percent", "mem_use_percent", "per_gpu_absolute_percent_usage",
    "per_gpu_estimated_attributable_utilization", "nvidia_attributable_power"};

constexpr std::string_view kEpochEnd = "end_training_epoch";
constexpr std::string_view kParameters = "total_params";

struct Count {
  std::string_view key;
  std::string_view text;
};
constexpr std::array<Count, 3> kCounts{{{kParameters, "parameters"},
                                        {"trainable_params", "trainable parameters"},
                                        {"total_mult_adds", "multiply-adds"}}};

// A record of results as a line of its own: figures without a section of power.
bool is_result_line(const json& line) {
  const json* metrics = member(line, "metrics");
  return member(line, "date") && metrics && metrics->is_object() && !metrics->empty() &&
         !metrics->contains("cpu") && !metrics->contains("gpu");
}

std::optional<HostTime> host_time(const Layout& layout, Duration stamp) {
  for (const Segment& segment : layout.segments) {
    if (stamp >= segment.stamp_begin && stamp <= segment.stamp_end) {
      return segment.begin + (stamp - segment.stamp_begin);
    }
  }
  return std::nullopt;
}

}  // namespace

bool is_known_figure(std::string_view key) {
  const auto is_key = [key](std::string_view known) { return known == key; };
  return std::ranges::any_of(kRead, is_key) || std::ranges::any_of(kDerived, is_key) ||
         std::ranges::any_of(kCpuFields,
                             [key](const PowerField& field) { return field.key == key; });
}

const json* member(const json& object, std::string_view key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? nullptr : &*found;
}

// A number, or the one number of a list (how uncore_power is written).
std::optional<double> number_of(const json* value) {
  if (value && value->is_array() && value->size() == 1) value = &value->front();
  if (!value || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

bool is_pid(std::string_view text) {
  const auto pid = parse_integer(text);
  return pid && *pid > 0 && *pid <= INT32_MAX;
}

model::Provenance provenance_of(const json& line, std::string_view section) {
  const json* all = member(line, "provenance");
  const json* own = all ? member(*all, section) : nullptr;
  if (!own || !own->is_string()) return model::Provenance::kMeasured;
  return model::parse_provenance(own->get_ref<const std::string&>())
      .value_or(model::Provenance::kMeasured);
}

bool is_experiment_file(std::string_view text) {
  const std::string_view start = trim(text);
  if (!start.starts_with('{') && !start.starts_with('[')) return false;
  const std::string_view head = start.substr(0, 4096);
  const auto has = [head](std::string_view key) {
    return head.find(fmt::format("\"{}\"", key)) != std::string_view::npos;
  };
  if (has(kEpochEnd)) return true;
  if (has(kParameters)) return start.starts_with('{');
  Lines lines(start);
  return lines.next() && is_result_line(json_value(lines.text()));
}

Result<void> ExperimentFiles::add(const SourceText& source) {
  const auto add_epoch = [&](const json* date, const json& figures) -> Result<void> {
    const auto at = date && date->is_string()
                        ? parse_calendar_time(date->get_ref<const std::string&>())
                        : std::nullopt;
    if (!at) {
      return fail(Errc::kCorrupt,
                  fmt::format("{}: an epoch has no date such as '2026-11-21 03:13:59.5' in '{}'",
                              source.path, kEpochEnd));
    }
    results_path_ = source.path;
    ends_.push_back({*at, false});
    for (const auto& [name, value] : figures.items()) {
      if (name != kEpochEnd) ++left_out_[name];
    }
    return {};
  };
  const json whole = json_value(source.text);
  if (whole.is_discarded() || is_result_line(whole)) {
    for (Lines lines(source.text); lines.next();) {
      if (trim(lines.text()).empty()) continue;
      const json line = json_value(lines.text());
      if (!is_result_line(line)) {
        return fail_at(source, lines.number(), "not a result of AIPowerMeter");
      }
      if (auto added = add_epoch(member(line, "date"), *member(line, "metrics")); !added) {
        return added;
      }
    }
    return {};
  }
  if (whole.is_object() && whole.contains(kParameters)) {
    std::vector<std::string> counts;
    for (const Count& count : kCounts) {
      const json* number = member(whole, count.key);
      if (number && number->is_number_unsigned()) {
        counts.push_back(fmt::format("{} {}", number->get<std::uint64_t>(), count.text));
      }
    }
    models_.push_back(fmt::format("the model, by {}: {}", source.path, fmt::join(counts, ", ")));
    return {};
  }
  for (const auto& [name, epoch] : whole.items()) {
    if (auto added = add_epoch(member(epoch, kEpochEnd), epoch); !added) return added;
  }
  return {};
}

std::vector<model::Window> ExperimentFiles::epochs(const Layout& layout) const {
  auto ends = ends_;
  std::ranges::sort(ends, {}, &Stamp::at);
  std::vector<model::Window> windows;
  std::optional<HostTime> begin = layout.times.front();
  for (const Stamp& end : ends) {
    const auto at = host_time(layout, end.at);
    if (begin && at && *at > *begin) {
      model::Window window;
      window.name = "epoch";
      window.begin = *begin;
      window.end = *at;
      windows.push_back(std::move(window));
    }
    begin = at;
  }
  return windows;
}

std::vector<std::string> ExperimentFiles::warnings(const Layout& layout) const {
  std::vector<std::string> found = models_;
  if (const std::size_t lost = ends_.size() - epochs(layout).size(); lost > 0) {
    found.push_back(
        fmt::format("{} of {} epochs of {} left out: they begin or end outside of the "
                    "recorded time",
                    lost, ends_.size(), results_path_));
  }
  if (!left_out_.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, epochs] : left_out_) {
      names.push_back(fmt::format("{} ({})", name, counted(epochs, "epoch")));
    }
    found.push_back(fmt::format("{} of {} left out: {}", counted(names.size(), "figure"),
                                results_path_, fmt::join(names, ", ")));
  }
  return found;
}

void ProcessShares::add_power(const std::string& process, model::DomainId domain, HostTime at,
                              double watts) {
  Integral& integral = processes_[process].energies[domain];
  const auto before = last_records_.find(domain);
  if (!integral.last && before != last_records_.end()) integral.last = {before->second, 0.0};
  if (integral.last) {
    integral.joules += (integral.last->second + watts) / 2 * seconds(at - integral.last->first);
    integral.any = true;
  }
  integral.last = {at, watts};
}

void ProcessShares::end_record(model::DomainId domain, HostTime at) {
  last_records_[domain] = at;
  for (auto& [name, shares] : processes_) {
    const auto found = shares.energies.find(domain);
    if (found == shares.energies.end()) continue;
    const auto& last = found->second.last;
    if (last && last->first != at) add_power(name, domain, at, 0);
  }
}

void ProcessShares::add_cpu_share(const std::string& process, double share) {
  processes_[process].cpu_share_sum += share;
  ++processes_[process].cpu_shares;
}

void ProcessShares::add_memory(const std::string& process, double bytes) {
  auto& most = processes_[process].most_bytes;
  most = std::max(most.value_or(bytes), bytes);
}

void ProcessShares::end_segment() {
  last_records_.clear();
  for (auto& [name, shares] : processes_) {
    for (auto& [domain, integral] : shares.energies) integral.last.reset();
  }
}

std::vector<model::ImportedWindow> ProcessShares::windows(HostTime begin, HostTime end) const {
  std::vector<model::ImportedWindow> windows;
  for (const auto& [name, shares] : processes_) {
    model::ImportedWindow window;
    window.name = name;
    window.begin = begin;
    window.duration = end - begin;
    for (const auto& [domain, integral] : shares.energies) {
      if (integral.any) window.energies.push_back({domain, Energy::joules(integral.joules)});
    }
    if (shares.cpu_shares > 0) {
      window.labels.push_back(
          {"mean_cpu_share",
           fmt::format("{:.4f}", shares.cpu_share_sum / static_cast<double>(shares.cpu_shares))});
    }
    if (shares.most_bytes) {
      window.labels.push_back({"most_memory_bytes", fmt::format("{:.0f}", *shares.most_bytes)});
    }
    windows.push_back(std::move(window));
  }
  return windows;
}

}  // namespace jouleprof::importers

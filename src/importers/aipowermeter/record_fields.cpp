#include "importers/aipowermeter/record_fields.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/text.h"

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

}  // namespace

bool is_known_figure(std::string_view key) {
  const auto is_key = [key](std::string_view known) { return known == key; };
  return std::any_of(kRead.begin(), kRead.end(), is_key) ||
         std::any_of(kDerived.begin(), kDerived.end(), is_key) ||
         std::any_of(kCpuFields.begin(), kCpuFields.end(),
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

}  // namespace jouleprof::importers

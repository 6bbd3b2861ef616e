#include <fmt/format.h>

#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/probes/probes.h"

namespace jouleprof::meters::nvml {
namespace {

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

}  // namespace

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

bool FieldPoll::read(model::Readings& out) {
  if (items_.empty()) return true;
  const HostTime before = clock_.now().host;
  fill(api_, device_, fields_, buffer_, answers_);
  const HostTime after = clock_.now().host;
  const HostTime at = before + (after - before) / 2;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    take(items_[i], answers_[i].code, answers_[i].value, at, out);
    if (is_lost(answers_[i].code)) return false;
  }
  if (std::erase_if(items_, [](const Item& item) { return item.dropped; }) > 0) {
    fields_.clear();
    for (const auto& item : items_) fields_.push_back(item.field);
  }
  return true;
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
  return begin + (poll_.read(out) ? period_ : kLostRetry);
}

}  // namespace jouleprof::meters::nvml

#include "meters/nvml/calibration/calibration_file.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "base/json/json_reader.h"
#include "base/shared_file.h"

namespace jouleprof::meters::nvml {
namespace {

using nlohmann::json;

constexpr auto kSchema = "jouleprof.calibration/2";  // /1 has no power levels
constexpr std::size_t kLongest = std::size_t{64} << 20;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// After the UUID of a simulated GPU: "@" and a checksum (FNV-1a) of its scenario, because scenarios
// repeat UUIDs. Empty for real GPUs.
std::string scenario_mark() {
  const auto scenario = variable("JOULEPROF_NVML_SCENARIO");
  if (scenario.empty()) return {};
  std::uint64_t sum = 0xCBF29CE484222325ULL;
  for (const char c : read_file(scenario, kLongest).value_or(scenario)) {
    sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return fmt::format("@{:016x}", sum);
}

// Every GPU's, as the file has them.
Result<json> read_all(const std::filesystem::path& path) {
  const auto text = read_file(path, kLongest);
  if (!text && text.error().code != Errc::kNotFound) return forward_error(text);
  json devices = json::object();
  auto document = parse_json(text.value_or(""), path.string());
  if (!document || !document->is_object() || !document->contains("devices")) return devices;
  for (auto& [name, device] : (*document)["devices"].items()) {
    if (device.is_object()) devices[name] = std::move(device);
  }
  return devices;
}

// Takes out those of the machine, or scenario, of now, by UUID.
json take_present(json& all) {
  const auto mark = scenario_mark();
  json present = json::object();
  json others = json::object();
  for (auto& [name, device] : all.items()) {
    const auto at = name.find('@');
    const bool is_present = at == std::string::npos ? mark.empty() : name.substr(at) == mark;
    (is_present ? present[name.substr(0, at)] : others[name]) = std::move(device);
  }
  all = std::move(others);
  return present;
}

Result<std::filesystem::path> existing_path() {
  auto path = calibration_path();
  if (!path.empty()) return path;
  return fail(Errc::kNotFound, "neither XDG_STATE_HOME nor HOME is set. Set one of them");
}

}  // namespace

std::filesystem::path calibration_path() {
  constexpr auto kFile = "jouleprof/calibration.json";
  if (const auto state = variable("XDG_STATE_HOME"); !state.empty()) {
    return std::filesystem::path(state) / kFile;
  }
  const auto home = variable("HOME");
  if (home.empty()) return {};
  return std::filesystem::path(home) / ".local/state" / kFile;
}

Result<json> read_devices() {
  const auto path = existing_path();
  if (!path) return forward_error(path);
  auto all = read_all(*path);
  if (!all) return all;
  return take_present(*all);
}

Result<void> change_devices(std::string_view what,
                            const std::function<void(json& devices)>& change) {
  const auto failed = [&](Error error) {
    error.message = fmt::format("cannot store {}: {}", what, error.message);
    return tl::unexpected(std::move(error));
  };
  const auto path = existing_path();
  if (!path) return failed(path.error());
  const auto lock = FileLock::take(path->string() + ".lock");
  if (!lock) return failed(lock.error());
  auto all = read_all(*path);
  if (!all) return failed(all.error());
  json devices = take_present(*all);
  change(devices);
  const auto mark = scenario_mark();
  for (auto& [uuid, device] : devices.items()) (*all)[uuid + mark] = std::move(device);
  const json document = {{"schema", kSchema}, {"devices", std::move(*all)}};
  const auto text = document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  if (auto written = replace_file(*path, text); !written) return failed(written.error());
  return {};
}

Result<std::size_t> forget_devices(const std::vector<std::string>& uuids) {
  std::size_t forgotten = 0;
  auto done = change_devices("the calibration", [&](json& devices) {
    for (const auto& uuid : uuids) forgotten += devices.erase(uuid);
  });
  if (!done) return forward_error(done);
  return forgotten;
}

Result<std::size_t> forget_all_devices() {
  std::size_t forgotten = 0;
  auto done = change_devices("the calibration", [&](json& devices) {
    forgotten = devices.size();
    devices.clear();
  });
  if (!done) return forward_error(done);
  return forgotten;
}

}  // namespace jouleprof::meters::nvml

#include "apps/cli/control/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/cli/options/choices.h"
#include "apps/cli/terminal/output.h"
#include "base/file.h"
#include "base/json/json.h"
#include "base/say.h"
#include "base/text.h"
#include "model/domain.h"
#include "session/sampling/visible_devices.h"

namespace jouleprof::cli {

namespace control = meters::control;

namespace {

using nlohmann::json;

control::HoldOptions hold_options(control::Knob knob, const std::vector<std::string>& devices) {
  control::HoldOptions options;
  options.knob = knob;
  options.devices = devices;
  options.library = environment("JOULEPROF_NVML_LIBRARY");
  return options;
}

void answer(const json& line) {
  fmt::print("{}\n", json_text(line));
  std::fflush(stdout);
}

// As jouleprof_status numbers them.
json to_json(const Error& error) {
  return {{"status", static_cast<int>(error.code) + 1}, {"message", error.message}};
}

json optional(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

json reply(meters::control::HeldBoards& held, const std::string& line) {
  const auto words = split_blanks(line);
  const auto value = words.size() == 2 ? parse_number(words[1]) : std::nullopt;
  if (words.size() == 1 && words[0] == "restore") {
    if (const auto restored = held.restore(); !restored) return to_json(restored.error());
    return {{"warnings", held.warnings()}};
  }
  if (words.empty() || words[0] != "set" || !value) {
    return to_json({Errc::kInvalidArgument, "unknown request: " + line});
  }
  const auto set = held.apply(*value);
  if (!set) return to_json(set.error());
  return {{"requested", optional(set->front().requested)},
          {"enforced_watts", optional(set->front().enforced_watts)}};
}

}  // namespace

RestoreCount restore_settings(control::Leftovers what) {
  RestoreCount count;
  for (const auto& leftover : control::restore_leftovers(
           control::control_folder(), environment("JOULEPROF_NVML_LIBRARY"), what)) {
    if (leftover.outcome) {
      ++count.restored;
      say("jouleprof: {}\n", *leftover.outcome);
      continue;
    }
    ++count.failed;
    say("jouleprof: {} does not have the setting that a sweep found: {}{}\n", leftover.device,
        leftover.outcome.error().message,
        what == control::Leftovers::kRestore ? ". Run as root: jouleprof apply --restore" : "");
  }
  return count;
}

int guard_settings(const std::vector<std::string>& arguments) {
  const auto fd = arguments.size() < 3 ? std::nullopt : parse_integer(arguments[0]);
  if (!fd) return kUsageError;
  return control::run_guard(static_cast<int>(*fd), arguments[1],
                            {arguments.begin() + 2, arguments.end()},
                            environment("JOULEPROF_NVML_LIBRARY"));
}

std::string smi_devices(const std::string& sweep_file, const model::SweepPlan& plan) {
  Input input;
  input.file = sweep_file;
  input.run = 1;
  std::vector<std::string> indices;
  if (const auto run = input.open()) {
    for (const auto& domain : run->recording().domains) {
      const auto index = model::gpu_index(domain);
      const auto& uuids = plan.devices;
      if (index && std::ranges::find(uuids, domain.uuid) != uuids.end()) {
        indices.push_back(std::to_string(*index));
      }
    }
  }
  const bool all = !indices.empty() && indices.size() == plan.devices.size();
  return fmt::format("{}", fmt::join(all ? indices : plan.devices, ","));
}

Result<std::vector<std::string>> devices_to_set(const std::vector<std::string>& named,
                                                std::optional<std::size_t> place) {
  if (!named.empty()) return named;
  const auto nvml = control::NvmlSession::open(environment("JOULEPROF_NVML_LIBRARY"));
  if (!nvml) return forward_error(nvml);
  const auto gpus = nvml->gpus();
  if (!gpus) return forward_error(gpus);
  std::vector<model::Domain> domains;
  std::map<model::DomainId, std::string> words;
  const auto add = [&](const std::string& uuid, const std::string& device,
                       std::optional<model::DomainId> board) {
    model::Domain domain;
    domain.id = model::DomainId{static_cast<std::uint32_t>(domains.size())};
    domain.kind = model::DomainKind::kGpu;
    domain.device = device;
    domain.uuid = uuid;
    domain.parent = board;
    domains.push_back(domain);
    return domain.id;
  };
  for (const auto& gpu : *gpus) {
    const auto board = add(gpu.uuid, gpu.device(), std::nullopt);
    words[board] = std::to_string(gpu.index);
    for (const auto& mig : gpu.mig_devices) add(mig.uuid, gpu.device(), board);
  }
  const auto visible = session::apply_visibility(domains, session::process_environment);
  for (const auto& warning : visible.warnings) say("warning    {}\n", warning);
  if (visible.order.empty()) {
    return fail(
        Errc::kInvalidArgument,
        "the command would see no GPU: change CUDA_VISIBLE_DEVICES, or name the GPUs to set "
        "with --devices");
  }
  std::vector<std::string> devices;
  for (const auto id : visible.order) devices.push_back(words[id]);
  if (!place) return devices;
  if (*place >= devices.size()) {
    return fail(Errc::kInvalidArgument,
                fmt::format("there is no GPU {} to set: the command would see {}, from 0 on",
                            *place, devices.size()));
  }
  return std::vector{devices[*place]};
}

Result<control::BoardState> look_at_boards(control::Knob knob,
                                           const std::vector<std::string>& devices) {
  return control::look_at(hold_options(knob, devices));
}

Result<std::unique_ptr<control::HeldBoards>> hold_boards(control::Knob knob,
                                                         const std::vector<std::string>& devices,
                                                         bool shared, std::vector<pid_t> users) {
  auto options = hold_options(knob, devices);
  options.users = std::move(users);
  options.folder = control::control_folder();
  options.guard = {"/proc/self/exe", kGuardWord};
  options.shared = shared;
  return control::HeldBoards::take(options);
}

int status_of_setting(const Error& error) {
  if (error.code == Errc::kInvalidArgument) return kUsageError;
  return error.code == Errc::kPermissionDenied ? kNotPermitted : kNothingToMeasure;
}

int serve_settings(const std::vector<std::string>& arguments) {
  const auto knob =
      arguments.size() == 3 ? meters::control::parse_knob(arguments[0]) : std::nullopt;
  if (!knob) return kUsageError;
  std::vector<std::string> devices;
  for (const auto word : split(arguments[1], ',')) {
    if (!word.empty()) devices.emplace_back(word);
  }
  auto held = hold_boards(*knob, devices, arguments[2] == "shared", {::getppid()});
  if (!held) {
    answer(to_json(held.error()));
    return kNotPermitted;
  }
  json start{{"least", (*held)->range().least},
             {"most", (*held)->range().most},
             {"steps", (*held)->range().steps},
             {"found", optional((*held)->found())},
             {"devices", json::array()}};
  for (const auto& board : (*held)->boards()) start["devices"].push_back(board.device());
  answer(start);
  std::string line;
  while (std::getline(std::cin, line)) answer(reply(**held, line));
  return kDone;
}

}  // namespace jouleprof::cli

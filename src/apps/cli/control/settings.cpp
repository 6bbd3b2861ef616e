#include "apps/cli/control/settings.h"

#include <fmt/format.h>

#include <cstdlib>

#include "apps/cli/terminal/exit_status.h"
#include "base/say.h"
#include "base/text.h"

namespace jouleprof::cli {

namespace control = meters::control;

namespace {

std::string nvml_library() {
  const char* value = std::getenv("JOULEPROF_NVML_LIBRARY");
  return value != nullptr ? value : "";
}

control::HoldOptions hold_options(control::Knob knob, const std::vector<std::string>& devices) {
  control::HoldOptions options;
  options.knob = knob;
  options.devices = devices;
  options.library = nvml_library();
  return options;
}

}  // namespace

RestoreCount restore_settings(control::Leftovers what) {
  RestoreCount count;
  for (const auto& leftover :
       control::restore_leftovers(control::control_folder(), nvml_library(), what)) {
    if (leftover.outcome) {
      ++count.restored;
      say("jouleprof: {}\n", *leftover.outcome);
      continue;
    }
    ++count.failed;
    say("jouleprof: {} does not have the setting that a sweep found: {}{}\n", leftover.device,
        leftover.outcome.error().message,
        what == control::Leftovers::kRestore ? ". Run as root: jouleprof restore" : "");
  }
  return count;
}

int guard_settings(const std::vector<std::string>& arguments) {
  const auto fd = arguments.size() < 3 ? std::nullopt : parse_integer(arguments[0]);
  if (!fd) return kUsageError;
  return control::run_guard(static_cast<int>(*fd), arguments[1],
                            {arguments.begin() + 2, arguments.end()}, nvml_library());
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

}  // namespace jouleprof::cli

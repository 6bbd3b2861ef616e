// Which GPUs a program can see, and which devices the user asked for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/domain.h"

namespace jouleprof::session {

// An environment: the value of a variable, nothing where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

struct Visibility {
  // The boards that stay visible, as the runtime numbers them: NVIDIA's, then AMD's.
  std::vector<model::DomainId> order;
  std::vector<std::string> warnings;  // what the user should know
};

// Sets Domain::visible as the CUDA and ROCm runtimes would decide for a process with this
// environment (CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER, ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES);
// what lies within an invisible GPU is invisible too. GPUs of one vendor must be in PCI order.
// Where a variable leaves it open which boards it means, all stay visible. Boards that are not
// visible before are not the program's at all: the runtimes do not count them.
//
// Rules: CUDA C++ Programming Guide, "CUDA Environment Variables"; ROCm, "GPU isolation
// techniques". NVIDIA_VISIBLE_DEVICES is the container runtime's, which hides the others from the
// tool as well.
Visibility apply_visibility(std::vector<model::Domain>& domains, const Environment& environment);

// Which of `domains` a user's words select, with all that lies within them. A word is "all", a
// device ("gpu1", "package-0"), a number (a visible GPU's place), a UUID or the beginning of one,
// or a kind
// ("gpu", "cpu", "dram"). Errors: invalid_argument for a word that selects nothing, or a beginning
// that fits several; the message lists the devices.
Result<std::vector<bool>> select_devices(const std::vector<model::Domain>& domains,
                                         const std::vector<std::string>& words);

// --- Which domains a monitor in a program measures ---

struct DeviceChoice {
  // Words for select_devices(); empty: all that the program can see.
  std::vector<std::string> words = {};
  // Instead of words: GPUs as the program's runtime numbers them.
  struct Gpus {
    std::vector<int> indices;
    bool with_processors = true;  // processor packages and their memory too, where there are any
  };
  std::optional<Gpus> gpus = {};

  // Named devices are measured even where CUDA_VISIBLE_DEVICES hides them.
  bool is_named() const { return !words.empty() || gpus.has_value(); }
};

struct ChosenDevices {
  std::vector<bool> chosen;  // by place in the list
  Visibility visibility;
};

// Sets Domain::visible. Errors: invalid_argument for words and for GPUs that do not exist.
Result<ChosenDevices> choose_devices(std::vector<model::Domain>& domains,
                                     const DeviceChoice& choice, const Environment& environment);

}  // namespace jouleprof::session

// Which domains a monitor in a program measures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "session/sampling/visible_devices.h"

namespace jouleprof::session {

struct DeviceChoice {
  // As select_devices(); empty: all that the program can see.
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

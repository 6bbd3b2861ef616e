#include "session/sampling/visible_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::session {
namespace {

using model::Domain;
using model::DomainKind;

bool is_board(const Domain& d) {
  return (d.kind == DomainKind::kGpu || d.kind == DomainKind::kModule) && !d.parent;
}

bool is_uuid(std::string_view text) { return text.starts_with("GPU-") || text.starts_with("MIG-"); }

bool contains_amd(std::string_view text) {
  return text.find("amdgpu") != std::string_view::npos ||
         text.find("AMD") != std::string_view::npos;
}

// A lost board may have no UUID; its device is "gpu" and NVML's index. AMD's UUIDs begin as
// NVIDIA's.
bool is_nvidia(const Domain& d) {
  if (contains_amd(d.device)) return false;
  return is_uuid(d.uuid) || (d.device.size() > 3 && d.device.starts_with("gpu") &&
                             d.device[3] >= '0' && d.device[3] <= '9');
}
bool is_amd(const Domain& d) {
  return !is_nvidia(d) && (contains_amd(d.device) || contains_amd(d.name));
}

const Domain* by_id(const std::vector<Domain>& domains, model::DomainId id) {
  const auto found = std::ranges::find(domains, id, &Domain::id);
  return found != domains.end() ? &*found : nullptr;
}

const Domain& board_of(const std::vector<Domain>& domains, const Domain& domain) {
  const Domain* at = &domain;
  while (at->parent) {
    const Domain* above = by_id(domains, *at->parent);
    if (above == nullptr || (above->kind != DomainKind::kGpu && !is_nvidia(*above))) break;
    at = above;
  }
  return *at;
}

// CUDA reads a list of integers as strtol does: blanks before and anything after are overlooked,
// and what is no number counts as invalid.
int leading_integer(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// What a variable selects among the boards: their places, in order.
struct Selection {
  std::vector<std::size_t> places;
  bool open = false;  // which boards are meant is not known
  std::vector<std::string> warnings;

  // False: listed twice, which the runtimes take for an error and show no device at all.
  bool add(std::size_t place) {
    if (std::ranges::find(places, place) != places.end()) {
      places.clear();
      return false;
    }
    places.push_back(place);
    return true;
  }
};

Selection by_integers(std::string_view list, std::size_t count) {
  Selection s;
  for (const auto word : split(list, ',')) {
    const int index = leading_integer(word);
    if (index < 0 || static_cast<std::size_t>(index) >= count) break;
    if (!s.add(static_cast<std::size_t>(index))) break;
  }
  return s;
}

// The one board whose UUID, or that of a MIG device on it, begins so. A driver since R470 calls a
// MIG device MIG-<uuid>, before MIG-<uuid of its board>/instance/instance.
std::optional<std::size_t> board_with_uuid(const std::vector<Domain>& domains,
                                           const std::vector<model::DomainId>& boards,
                                           std::string_view prefix) {
  const std::string_view old_mig = "MIG-GPU-";
  if (prefix.starts_with(old_mig)) {
    prefix.remove_prefix(4);
    prefix = prefix.substr(0, prefix.find('/'));
  }
  std::vector<model::DomainId> hits;
  for (const auto& domain : domains) {
    if (domain.uuid.starts_with(prefix)) {
      const auto board = board_of(domains, domain).id;
      if (domain.uuid == prefix) hits.clear();
      if (std::ranges::find(hits, board) == hits.end()) hits.push_back(board);
      if (domain.uuid == prefix) break;
    }
  }
  if (hits.size() != 1) return std::nullopt;
  const auto place = std::ranges::find(boards, hits.front());
  if (place == boards.end()) return std::nullopt;
  return static_cast<std::size_t>(place - boards.begin());
}

Selection by_uuids(std::string_view list, const std::vector<Domain>& domains,
                   const std::vector<model::DomainId>& boards) {
  Selection s;
  const bool mig = list.starts_with("MIG-");
  for (const auto part : split(list, ',')) {
    const auto word = trim(part);
    if (!word.starts_with(mig ? "MIG-" : "GPU-")) break;
    auto place = board_with_uuid(domains, boards, word);
    const bool any_mig =
        std::ranges::any_of(domains, [](const Domain& d) { return d.uuid.starts_with("MIG-"); });
    if (!place && mig && !any_mig) {
      // The driver's name of a MIG device does not say on which board it is.
      if (boards.size() == 1) {
        place = 0;
      } else {
        s.open = true;
        s.warnings.push_back(fmt::format(
            "CUDA_VISIBLE_DEVICES={}: which GPU holds this MIG device is not known; all GPUs "
            "are taken as visible",
            list));
      }
    }
    if (!place) break;
    if (!s.add(*place) || mig) break;  // a process sees one MIG device only: the first
  }
  return s;
}

Selection cuda(const std::string& list, const std::vector<Domain>& domains,
               const std::vector<model::DomainId>& boards, const Environment& environment) {
  const auto text = trim(list);
  if (is_uuid(text)) return by_uuids(text, domains, boards);
  Selection s = by_integers(text, boards.size());
  const bool one_model = std::ranges::all_of(boards, [&](model::DomainId id) {
    return by_id(domains, id)->name == by_id(domains, boards.front())->name;
  });
  const bool all_or_none = s.places.empty() || s.places.size() == boards.size();
  if (!one_model && !all_or_none &&
      environment("CUDA_DEVICE_ORDER").value_or("FASTEST_FIRST") != "PCI_BUS_ID") {
    s.open = true;
    s.warnings.push_back(
        fmt::format("CUDA_VISIBLE_DEVICES={}: with GPUs of different models CUDA numbers them by "
                    "speed; all are "
                    "taken as visible. Set CUDA_DEVICE_ORDER=PCI_BUS_ID or name them by UUID",
                    list));
  }
  return s;
}

// ROCR_VISIBLE_DEVICES numbers the devices, HIP_VISIBLE_DEVICES what that leaves; both take UUIDs.
Selection rocm(const std::vector<std::pair<std::string, std::string>>& lists,
               const std::vector<Domain>& domains, const std::vector<model::DomainId>& boards) {
  Selection all;
  for (std::size_t i = 0; i < boards.size(); ++i) all.places.push_back(i);
  for (const auto& [name, list] : lists) {
    if (trim(list).starts_with("GPU-")) {
      std::vector<std::size_t> places;
      const auto words = split(list, ',');
      for (const auto word : words) {
        for (const std::size_t place : all.places) {
          if (by_id(domains, boards[place])->uuid == trim(word)) places.push_back(place);
        }
      }
      if (places.size() == words.size()) {
        all.places = std::move(places);
        continue;
      }
      all.open = true;
      all.warnings.push_back(fmt::format(
          "{}={}: which GPU has this UUID is not known; all are taken as visible", name, list));
      continue;
    }
    Selection part = by_integers(list, all.places.size());
    for (auto& place : part.places) place = all.places[place];
    all.places = std::move(part.places);
  }
  return all;
}

void hide_others(std::vector<Domain>& domains, const std::vector<model::DomainId>& boards,
                 const Selection& selection) {
  for (std::size_t i = 0; i < boards.size(); ++i) {
    const bool visible = std::ranges::find(selection.places, i) != selection.places.end();
    for (auto& domain : domains) {
      if (board_of(domains, domain).id == boards[i]) domain.visible = visible;
    }
  }
}

Result<std::vector<bool>> choose_gpus(const std::vector<model::Domain>& domains,
                                      const DeviceChoice::Gpus& gpus,
                                      const std::vector<model::DomainId>& order) {
  std::vector<model::DomainId> boards;
  for (const int index : gpus.indices) {
    if (index < 0 || static_cast<std::size_t>(index) >= order.size()) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("GPU index {} does not exist: CUDA shows {} here", index,
                              counted(order.size(), "GPU")));
    }
    boards.push_back(order[static_cast<std::size_t>(index)]);
  }
  const auto is_board = [&](model::DomainId id) {
    return std::ranges::find(boards, id) != boards.end();
  };
  std::vector<bool> chosen;
  for (const auto& d : domains) {
    const bool is_processor = d.kind == DomainKind::kCpu || d.kind == DomainKind::kDram;
    chosen.push_back(is_board(d.id) || (d.parent && is_board(*d.parent)) ||
                     (gpus.with_processors && is_processor));
  }
  return chosen;
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

Visibility apply_visibility(std::vector<Domain>& domains, const Environment& environment) {
  Visibility out;
  std::vector<model::DomainId> nvidia;
  std::vector<model::DomainId> amd;
  for (const auto& domain : domains) {
    if (!is_board(domain) || !domain.visible) continue;
    if (is_nvidia(domain)) nvidia.push_back(domain.id);
    if (is_amd(domain)) amd.push_back(domain.id);
  }
  const auto apply = [&](const std::vector<model::DomainId>& boards,
                         const std::optional<Selection>& selection) {
    if (!selection || selection->open) {
      out.order.insert(out.order.end(), boards.begin(), boards.end());
    } else {
      hide_others(domains, boards, *selection);
      for (const std::size_t place : selection->places) out.order.push_back(boards[place]);
    }
    if (!selection) return;
    out.warnings.insert(out.warnings.end(), selection->warnings.begin(), selection->warnings.end());
  };
  std::optional<Selection> chosen;
  const auto cuda_list = environment("CUDA_VISIBLE_DEVICES");
  if (cuda_list && !nvidia.empty()) chosen = cuda(*cuda_list, domains, nvidia, environment);
  apply(nvidia, chosen);
  chosen.reset();
  std::vector<std::pair<std::string, std::string>> lists;
  for (const char* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
    if (const auto list = environment(name)) lists.emplace_back(name, *list);
  }
  if (!lists.empty() && !amd.empty()) chosen = rocm(lists, domains, amd);
  apply(amd, chosen);
  return out;
}

namespace {

// The first NVIDIA GPU that does not answer, whose UUID is unknown therefore, for a `word` that is
// a UUID.
const Domain* find_silent(const std::vector<Domain>& domains, const std::string& word) {
  if (!is_uuid(word)) return nullptr;
  const auto silent = std::ranges::find_if(domains, [](const Domain& d) {
    return d.kind == model::DomainKind::kGpu && d.uuid.empty() && !d.unavailable_reason.empty();
  });
  return silent == domains.end() ? nullptr : &*silent;
}

}  // namespace

Result<std::vector<bool>> select_devices(const std::vector<Domain>& domains,
                                         const std::vector<std::string>& words) {
  std::vector<bool> selected(domains.size(), words.empty());
  for (const auto& word : words) {
    if (word.empty()) return fail(Errc::kInvalidArgument, "an empty word names no device");
    const auto kind = model::parse_domain_kind(word);
    const auto number = parse_integer(word);
    std::vector<std::size_t> exact;
    std::vector<std::size_t> begun;  // devices whose UUID begins so
    long long place = 0;
    for (std::size_t i = 0; i < domains.size(); ++i) {
      const auto& d = domains[i];
      const bool numbered = number && is_board(d) && d.visible && place++ == *number;
      if (word == "all" || (kind && d.kind == *kind) || d.device == word || d.uuid == word ||
          numbered) {
        exact.push_back(i);
      } else if (word.size() > 4 && !d.uuid.empty() && d.uuid.starts_with(word)) {
        begun.push_back(i);
      }
    }
    if (exact.empty() && !begun.empty()) {
      const bool one = std::ranges::all_of(
          begun, [&](std::size_t i) { return domains[i].uuid == domains[begun.front()].uuid; });
      if (one) exact = begun;
    }
    if (exact.empty()) {
      if (const auto* silent = begun.empty() ? find_silent(domains, word) : nullptr) {
        return fail(Errc::kUnavailable,
                    fmt::format("'{}' is no device that answers, and may be {}: {}", word,
                                silent->device, silent->unavailable_reason));
      }
      std::vector<std::string> devices;
      for (const auto& d : domains) {
        if (std::ranges::find(devices, d.device) == devices.end()) {
          devices.push_back(d.device);
        }
      }
      return fail(Errc::kInvalidArgument,
                  fmt::format("{} '{}'; this machine has: {}",
                              begun.empty() ? "no device is called" : "several devices begin with",
                              word, fmt::join(devices, ", ")));
    }
    for (const std::size_t i : exact) selected[i] = true;
  }
  // What lies within a selected domain comes with it; parents may stand anywhere in the list.
  for (std::size_t round = 0; round < domains.size(); ++round) {
    for (std::size_t i = 0; i < domains.size(); ++i) {
      if (selected[i] || !domains[i].parent) continue;
      const Domain* parent = by_id(domains, *domains[i].parent);
      if (parent != nullptr && selected[static_cast<std::size_t>(parent - domains.data())]) {
        selected[i] = true;
      }
    }
  }
  return selected;
}

Result<ChosenDevices> choose_devices(std::vector<model::Domain>& domains,
                                     const DeviceChoice& choice, const Environment& environment) {
  ChosenDevices out;
  auto selected = select_devices(domains, choice.words);
  out.visibility = apply_visibility(domains, environment);
  if (selected && choice.gpus) {
    selected = choose_gpus(domains, *choice.gpus, out.visibility.order);
  }
  if (!selected) return forward_error(selected);
  out.chosen = std::move(*selected);
  for (std::size_t i = 0; i < domains.size(); ++i) {
    if (!domains[i].visible && !choice.is_named()) out.chosen[i] = false;
  }
  return out;
}

}  // namespace jouleprof::session

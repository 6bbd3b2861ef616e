#include "spans/procs/owners.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::spans {
namespace {

enum class Id { kHash, kPod, kNumber, kName, kSluid, kPbsJob, kLsfJob, kSlot, kTask };
enum class Field { kContainer, kPod, kJob, kStep, kUser };

// A path's segment `prefix` + id + `suffix`. `below`: a segment further up has this text in it.
struct Rule {
  Field field;
  std::string_view prefix;
  Id id;
  std::string_view suffix;
  std::string_view runtime = "";
  std::string_view below = "";
  bool anywhere = false;         // the prefix need not begin the segment
  std::string_view parent = "";  // the segment just above
};

// The first rule that fits a segment decides. A segment a:b:c, as runtimes with the cgroupfs driver
// write it, is the two segments "a" and "b-c.scope" here.
constexpr std::array kRules{
    Rule{Field::kContainer, "docker-", Id::kHash, ".scope", "docker"},
    Rule{Field::kContainer, "cri-containerd-", Id::kHash, ".scope", "containerd"},
    Rule{Field::kContainer, "nerdctl-", Id::kHash, ".scope", "containerd"},
    Rule{Field::kContainer, "crio-", Id::kHash, ".scope", "cri-o"},
    Rule{Field::kContainer, "crio-", Id::kHash, "", "cri-o"},
    Rule{Field::kContainer, "libpod-", Id::kHash, ".scope", "podman"},
    Rule{Field::kContainer, "libpod-", Id::kHash, "", "podman"},
    Rule{Field::kContainer, "libpod-payload-", Id::kHash, "", "podman"},
    Rule{Field::kContainer, "", Id::kHash, "", "docker", "docker"},
    Rule{Field::kContainer, "", Id::kHash, "", "docker", "ecs"},
    Rule{Field::kContainer, "", Id::kHash, "", "containerd", "k8s.io"},
    Rule{Field::kContainer, "", Id::kHash, ""},  // kubelet with the cgroupfs driver
    Rule{Field::kContainer, "lxc.payload.", Id::kName, "", "lxc"},
    Rule{Field::kContainer, "", Id::kName, "", "lxc", "", false, "lxc"},
    Rule{Field::kContainer, "", Id::kName, "", "lxc", "", false, "lxc.payload"},
    Rule{Field::kPod, "-pod", Id::kPod, ".slice", "", "", true},
    Rule{Field::kPod, "pod", Id::kPod, "", "", "kubepods"},
    Rule{Field::kJob, "job_", Id::kNumber, "", "", "slurm"},
    Rule{Field::kJob, "", Id::kSluid, "", "", "slurm"},
    Rule{Field::kStep, "step_", Id::kName, "", "", "slurm"},
    Rule{Field::kUser, "uid_", Id::kNumber, "", "", "slurm"},
    Rule{Field::kJob, "", Id::kPbsJob, "", "", "pbs_jobs.service", false, "jobid"},  // cgroup v1
    Rule{Field::kJob, "", Id::kPbsJob, "", "", "pbs_jobs.service", false, "jobs"},   // v2
    Rule{Field::kJob, "", Id::kPbsJob, "", "", "", false, "torque"},
    Rule{Field::kJob, "job.", Id::kLsfJob, "", "", "lsf"},
    Rule{Field::kJob, "slot", Id::kSlot, "", "", "condor", true},
    Rule{Field::kJob, "", Id::kTask, ".scope", "", "nomad.slice"},
    Rule{Field::kUser, "user-", Id::kNumber, ".slice"},
    Rule{Field::kUser, "user@", Id::kNumber, ".service"},
};

constexpr std::size_t kLongestName = 128;
constexpr std::size_t kLongestUnit = 255;    // UNIT_NAME_MAX of systemd, and NAME_MAX
constexpr std::size_t kContainerId = 64;     // digits
constexpr std::size_t kShortContainer = 12;  // of these, as docker ps prints them

// Groups whose children are jobs, by the end or the begin of their name.
struct Scheduler {
  std::string_view parent;  // empty: any
  std::string_view prefix;
  std::string_view suffix;
};
constexpr std::array kSchedulers{
    Scheduler{"", "", "slurmstepd.scope"},      Scheduler{"slurm", "uid_", ""},
    Scheduler{"pbs_jobs.service", "jobid", ""}, Scheduler{"pbs_jobs.service", "jobs", ""},
    Scheduler{"", "torque", "torque"},          Scheduler{"lsf", "", ""},
    Scheduler{"", "htcondor", "htcondor"},      Scheduler{"nomad.slice", "", ".slice"},
};
constexpr std::string_view kPayload = "payload";  // of a machine that systemd-nspawn runs
constexpr std::string_view kSlurmOwn = "system";  // a child that is no job
// What a user makes below it is named by that user, and owns nothing.
constexpr std::string_view kUserDelegate = "user@";
// But for Flux, whose jobs are units of the systemd of a system's account.
constexpr std::uint32_t kFirstUser = 1000;
constexpr std::array<std::string_view, 2> kFluxShells{"imp-shell-", "shell-"};
constexpr std::string_view kService = ".service";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }
bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_printable(char c) { return c > ' ' && c < 127; }

// A number, or an element of an array of jobs: 17, 17[3].
bool is_number_of_array(std::string_view text) {
  const auto digits = std::ranges::find_if_not(text, is_digit) - text.begin();
  if (digits == 0) return false;
  text.remove_prefix(static_cast<std::size_t>(digits));
  return text.empty() || (text.size() > 2 && text.front() == '[' && text.back() == ']' &&
                          std::all_of(text.begin() + 1, text.end() - 1, is_digit));
}

// An allocation of Nomad: a UUID.
bool is_uuid(std::string_view text) {
  return text.size() == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' &&
         text[23] == '-' && std::ranges::all_of(text, [](char c) { return is_hex(c) || c == '-'; });
}

std::string_view up_to_dot(std::string_view text) { return text.substr(0, text.find('.')); }

bool is_id(std::string_view text, Id kind) {
  switch (kind) {
    case Id::kHash:
      return text.size() == kContainerId && std::ranges::all_of(text, is_hex);
    case Id::kPod:  // a uid with dashes or, of systemd, underscores; of static pods 32 digits
      return (text.size() == 36 || text.size() == 32) &&
             std::ranges::all_of(text, [](char c) { return is_hex(c) || c == '-' || c == '_'; });
    case Id::kNumber:
      return !text.empty() && text.size() <= 10 && std::ranges::all_of(text, is_digit);
    case Id::kSluid:  // of Slurm 26: s, and 13 letters and digits
      return text.size() == 14 && text.front() == 's' && std::ranges::all_of(text, is_alphanumeric);
    case Id::kName:
      return !text.empty() && text.size() <= kLongestName &&
             std::ranges::all_of(text, is_printable);
    case Id::kPbsJob: {  // 2404743.server, 12[3].server
      const auto host = text.find('.');
      return host != std::string_view::npos && text.size() <= kLongestName &&
             is_number_of_array(text.substr(0, host)) &&
             std::all_of(text.begin() + static_cast<std::ptrdiff_t>(host), text.end(),
                         [](char c) { return is_alphanumeric(c) || c == '.' || c == '-'; });
    }
    case Id::kLsfJob:  // job, process and time
      return text.size() <= kLongestName && split(text, '.').size() == 3 &&
             is_number_of_array(up_to_dot(text));
    case Id::kSlot:  // slot1_23@host
      return !text.empty() && is_digit(text.front()) && text.size() + 4 <= kLongestName &&
             std::ranges::all_of(text, is_printable);
    case Id::kTask:  // allocation.task
      return text.size() <= kLongestName && is_uuid(up_to_dot(text));
  }
  return false;
}

std::optional<std::string_view> id_in(std::string_view segment, const Rule& rule) {
  if (!segment.ends_with(rule.suffix)) return std::nullopt;
  segment.remove_suffix(rule.suffix.size());
  const auto at = rule.anywhere ? segment.rfind(rule.prefix) : 0;
  if (at == std::string_view::npos || !segment.substr(at).starts_with(rule.prefix)) {
    return std::nullopt;
  }
  const auto id = segment.substr(at + rule.prefix.size());
  if (!is_id(id, rule.id)) return std::nullopt;
  if (rule.id == Id::kSlot) return segment.substr(at);  // as HTCondor names it
  return rule.id == Id::kLsfJob || rule.id == Id::kTask ? up_to_dot(id) : id;
}

// [imp-]shell-RANK-JOB.service
std::string_view flux_job_in(std::string_view unit) {
  const auto* const shell = std::ranges::find_if(
      kFluxShells, [unit](std::string_view prefix) { return unit.starts_with(prefix); });
  if (shell == kFluxShells.end() || !unit.ends_with(kService)) return {};
  unit.remove_prefix(shell->size());
  unit.remove_suffix(kService.size());
  const auto dash = unit.find('-');
  if (dash == 0 || dash == std::string_view::npos) return {};
  const auto job = unit.substr(dash + 1);
  const bool is_job =
      job.size() > 1 && job.size() <= kLongestName && job.front() == 'f' &&
      std::ranges::all_of(job, is_alphanumeric) &&
      std::all_of(unit.begin(), unit.begin() + static_cast<std::ptrdiff_t>(dash), is_digit);
  return is_job ? job : std::string_view{};
}

// Below a container's group its root chooses the names. A user there is not the machine's, and a
// job is one of the container's own scheduler: it is named with the container.
void assign(const Rule& rule, std::string_view id, model::Owner& owner) {
  const bool is_in_container = !owner.container.empty();
  switch (rule.field) {
    case Field::kContainer:
      owner.container = id;
      owner.runtime = rule.runtime;
      break;
    case Field::kPod:
      owner.pod = id;
      std::ranges::replace(owner.pod, '_', '-');
      owner.container.clear();  // what was found further up contains the pod
      owner.runtime.clear();
      break;
    case Field::kJob:
      owner.job = id;
      if (is_in_container) {
        owner.job.append("@").append(std::string_view(owner.container).substr(0, kShortContainer));
      }
      owner.step.clear();
      break;
    case Field::kStep:
      if (owner.step.empty()) owner.step = id;
      break;
    case Field::kUser:
      if (is_in_container) break;
      if (const auto uid = parse_integer(id); uid && *uid <= 0xffffffff) {
        owner.user = static_cast<std::uint32_t>(*uid);
      }
      break;
  }
}

std::vector<std::string> segments_of(std::string_view path) {
  std::vector<std::string> out;
  for (const auto part : split(path, '/')) {
    if (part.empty()) continue;
    const auto colons = split(part, ':');
    if (colons.size() != 3 || colons[1].empty() || colons[2].empty()) {
      out.emplace_back(part);
      continue;
    }
    if (!colons[0].empty()) out.emplace_back(colons[0]);
    std::string runtime(colons[1]);
    out.push_back(runtime.append("-").append(colons[2]).append(".scope"));
  }
  return out;
}

bool is_unit(std::string_view segment) {
  return segment.size() <= kLongestUnit &&
         (segment.ends_with(".service") || segment.ends_with(".scope"));
}

void complete(model::Owner& owner, const model::Owner& other) {
  if (owner.container.empty()) {
    owner.container = other.container;
    owner.runtime = other.runtime;
  }
  if (owner.pod.empty()) owner.pod = other.pod;
  if (owner.job.empty()) {
    owner.job = other.job;
    owner.step = other.step;
  }
  if (owner.unit.empty()) owner.unit = other.unit;
  if (!owner.user) owner.user = other.user;
}

struct Named {
  model::Owner owner;
  bool has_unknown_job = false;
};

Named name_of_path(std::string_view path) {
  Named out;
  std::string above;
  std::string parent;
  bool is_below_scheduler = false;
  bool is_below_user = false;
  bool is_in_pods_container = false;
  for (const auto& segment : segments_of(path)) {
    // What a pod's container or a machine in the machine makes below its group names nothing.
    if (is_in_pods_container || (segment == kPayload && is_unit(parent))) break;
    if (is_below_user) {
      if (const auto job = flux_job_in(segment); !job.empty()) out.owner.job = job;
      continue;
    }
    const auto* const rule = std::ranges::find_if(kRules, [&](const Rule& r) {
      return (r.parent.empty() || parent == r.parent) && id_in(segment, r) &&
             (r.below.empty() || above.find(r.below) != std::string::npos);
    });
    // A job can name groups of its own below its group.
    const bool is_jobs_own =
        rule != kRules.end() && rule->field == Field::kJob && !out.owner.job.empty();
    if (rule != kRules.end() && !is_jobs_own) {
      assign(*rule, *id_in(segment, *rule), out.owner);
      is_in_pods_container = rule->field == Field::kContainer && !out.owner.pod.empty();
    }
    if (is_unit(segment) && out.owner.container.empty() && out.owner.job.empty() &&
        (rule == kRules.end() || segment.starts_with(kUserDelegate))) {
      out.owner.unit = segment;
    }
    if (segment.starts_with(kUserDelegate) && is_unit(segment)) {
      if (out.owner.user.value_or(kFirstUser) >= kFirstUser) break;
      is_below_user = true;
    }
    out.has_unknown_job |= is_below_scheduler && out.owner.job.empty() && segment != kSlurmOwn;
    is_below_scheduler = std::ranges::any_of(kSchedulers, [&](const Scheduler& s) {
      return (s.parent.empty() || parent == s.parent) && segment.starts_with(s.prefix) &&
             segment.ends_with(s.suffix);
    });
    above += segment + "/";
    parent = segment;
  }
  return out;
}

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 1024;
constexpr std::size_t kLongestFile = 65536;
constexpr std::size_t kLongestJob = 128;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 6 && std::ranges::all_of(text, is_digit);
}

std::optional<GpuJobs> parse_name(std::string_view name) {
  GpuJobs out;
  const auto dot = name.find('.');
  const auto gpu = name.substr(0, dot);
  if (!is_number(gpu) && !gpu.starts_with("GPU-") && !gpu.starts_with("MIG-")) return std::nullopt;
  if (dot != std::string_view::npos) {
    if (!is_number(name.substr(dot + 1))) return std::nullopt;
    out.instance = static_cast<unsigned>(*parse_integer(name.substr(dot + 1)));
  }
  out.gpu = gpu;
  return out;
}

bool is_job(std::string_view text) {
  return !text.empty() && text.size() <= kLongestJob && std::ranges::all_of(text, is_printable);
}

void add_once(std::string_view job, std::vector<std::string>& to) {
  if (std::ranges::find(to, job) == to.end()) to.emplace_back(job);
}

}  // namespace

model::Owner owner_of_cgroup_path(std::string_view path) { return name_of_path(path).owner; }

ProcessGroup parse_process_group(std::string_view text) {
  ProcessGroup group;
  struct Line {
    int order = 0;
    std::string_view path;
  };
  std::vector<Line> lines;
  std::string_view cpuacct;
  for (const auto line : split(text, '\n')) {
    // hierarchy:controllers:path, and the path may hold colons (cgroups(7))
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const auto controllers = split(line.substr(first + 1, second - first - 1), ',');
    const auto path = line.substr(second + 1);
    const bool unified = line.starts_with("0::");
    const bool counts = std::ranges::find(controllers, "cpuacct") != controllers.end();
    if (counts) cpuacct = path;
    if (unified) group.path = path;
    if (path.find("/..") != std::string_view::npos) group.hidden = true;
    lines.push_back({unified ? 0 : counts ? 1 : 2, path});
  }
  // On a hybrid machine the CPU time is counted by cgroup v1's controller.
  group.unified = cpuacct.empty();
  if (!group.unified) group.path = cpuacct;
  std::ranges::stable_sort(lines, {}, &Line::order);
  for (const auto& line : lines) {
    auto named = name_of_path(line.path);
    complete(group.owner, named.owner);
    if (named.has_unknown_job) group.unknown_job = line.path;
  }
  if (!group.owner.job.empty()) group.unknown_job.clear();
  return group;
}

Result<void> JobMapping::read(const fs::path& folder) {
  all_.clear();
  malformed_.clear();
  by_gpu_.clear();
  const auto names = list_folder(folder);
  if (!names) return forward_error(names);
  for (const auto& name : *names) {
    if (all_.size() == kMostFiles) break;
    auto entry = parse_name(name);
    std::error_code err;
    if (!entry || !fs::is_regular_file(folder / name, err)) continue;
    const auto text = read_file(folder / name, kLongestFile);
    if (!text) continue;
    for (const auto line : split(*text, '\n')) {
      const auto job = trim(line);
      if (is_job(job)) {
        add_once(job, entry->jobs);
      } else if (!job.empty() && malformed_.empty()) {
        malformed_ = name;
      }
    }
    if (entry->jobs.empty()) continue;
    for (const auto& job : entry->jobs) add_once(job, by_gpu_[entry->gpu]);
    all_.push_back(std::move(*entry));
  }
  return {};
}

std::optional<std::string> JobMapping::only_job(std::optional<unsigned> index,
                                                std::string_view uuid) const {
  auto found = by_gpu_.find(uuid);
  if (found == by_gpu_.end() && index) found = by_gpu_.find(std::to_string(*index));
  if (found == by_gpu_.end() || found->second.size() != 1) return std::nullopt;
  return found->second.front();
}

namespace {

constexpr std::size_t kMostNames = 10'000;
constexpr std::string_view kLog = ".log";

// Kubernetes' names: no underscore, so that one separates them here.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

void add_pod(std::string_view folder, model::KubeNames& names) {
  const auto parts = split(folder, '_');
  if (parts.size() != 3 || !std::ranges::all_of(parts, is_name)) return;
  names.pods[std::string(parts[2])] = {std::string(parts[0]), std::string(parts[1])};
}

void add_container(std::string_view file, model::KubeNames& names) {
  if (!file.ends_with(kLog) || file.size() < kContainerId + kLog.size() + 2) return;
  file.remove_suffix(kLog.size());
  const auto id = file.substr(file.size() - kContainerId);
  file.remove_suffix(kContainerId);
  if (!is_id(id, Id::kHash) || !file.ends_with('-')) return;
  file.remove_suffix(1);
  const auto parts = split(file, '_');
  if (parts.size() != 3 || !std::ranges::all_of(parts, is_name)) return;
  names.containers[std::string(id)] = parts[2];
}

// When the list of a folder's files changed last; absent where there is none.
fs::file_time_type changed(const fs::path& folder) {
  std::error_code error;
  const auto time = fs::last_write_time(folder, error);
  return error ? fs::file_time_type::min() : time;
}

}  // namespace

Result<void> KubeNameFolder::read() {
  const fs::path pods = folder_ / "pods";
  const fs::path containers = folder_ / "containers";
  const auto pods_now = changed(pods);
  const auto containers_now = changed(containers);
  if (pods_now != fs::file_time_type::min() && pods_now == pods_changed_ &&
      containers_now == containers_changed_) {
    return {};
  }
  names_ = {};
  const auto listed = list_folder(pods);
  if (!listed) return forward_error(listed);
  for (std::size_t i = 0; i < std::min(listed->size(), kMostNames); ++i) {
    add_pod((*listed)[i], names_);
  }
  if (const auto files = list_folder(containers)) {
    for (std::size_t i = 0; i < std::min(files->size(), kMostNames); ++i) {
      add_container((*files)[i], names_);
    }
  }
  pods_changed_ = pods_now;
  containers_changed_ = containers_now;
  return {};
}

}  // namespace jouleprof::spans

#include "spans/procs/procfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::spans {
namespace {

constexpr std::string_view kInitialPidNamespace = "pid:[4026531836]";  // PROC_PID_INIT_INO

Duration of_ticks(std::uint64_t ticks) {
  static const std::uint64_t per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  return std::chrono::seconds{ticks / per_second} +
         Duration{(ticks % per_second) * 1'000'000'000 / per_second};
}

// Numbers between blanks, one after the other.
class Numbers {
 public:
  explicit Numbers(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}
  template <typename T>
  bool next(T& value) {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t')) ++at_;
    const auto [rest, err] = std::from_chars(at_, end_, value);
    at_ = rest;
    return err == std::errc{};
  }
  bool skip(int fields) {
    for (; fields > 0; --fields) {
      while (at_ != end_ && *at_ == ' ') ++at_;
      if (at_ == end_) return false;
      while (at_ != end_ && *at_ != ' ') ++at_;
    }
    return true;
  }

 private:
  const char* at_;
  const char* end_;
};

// The number after `key` at the beginning of a line.
std::optional<std::uint64_t> field(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    std::uint64_t value = 0;
    if (Numbers(text.substr(at + key.size())).next(value)) return value;
    return std::nullopt;
  }
  return std::nullopt;
}

void append_pids(std::string_view text, std::vector<pid_t>& out) {
  Numbers numbers(text);
  for (pid_t pid = 0; numbers.next(pid);) out.push_back(pid);
}

// The numeric names in the folder open at `fd`, which is closed.
void append_numeric_names(int fd, std::vector<pid_t>& out) {
  DIR* folder = fdopendir(fd);
  if (folder == nullptr) {
    ::close(fd);
    return;
  }
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    append_pids(entry->d_name, out);
  }
  closedir(folder);
}

struct Launcher {
  const char* name;
  const char* rank;
  const char* local_rank;
  const char* world_size;
};

// https://pytorch.org/docs/stable/elastic/run.html, https://docs.open-mpi.org (ompi environment
// variables), https://slurm.schedmd.com/srun.html. PMI's local variables are those of Intel MPI.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "LOCAL_RANK", "WORLD_SIZE"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"pmi", "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},
    {"slurm", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
};

std::string text_of(const Variable& variable, const char* name) {
  const char* value = variable(name);
  return value != nullptr ? value : "";
}

std::optional<std::uint32_t> number_of(const Variable& variable, const char* name) {
  const std::string text = text_of(variable, name);
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, err] = std::from_chars(text.data(), end, number);
  if (err != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  // The name may hold anything, blanks and brackets included: it ends at the last bracket.
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 2 >= text.size()) {
    return std::nullopt;
  }
  ProcessStat stat;
  std::uint64_t user = 0, system = 0, children_user = 0, children_system = 0, rss_pages = 0;
  std::uint64_t ignored = 0;
  if (!Numbers(text.substr(0, open)).next(stat.pid)) return std::nullopt;
  stat.name = text.substr(open + 1, close - open - 1);
  stat.state = text[close + 2];
  Numbers rest(text.substr(close + 3));
  const bool complete = rest.next(stat.parent) && rest.skip(9) && rest.next(user) &&
                        rest.next(system) && rest.next(children_user) &&
                        rest.next(children_system) && rest.skip(2) && rest.next(stat.threads) &&
                        rest.skip(1) && rest.next(stat.start_ticks) && rest.skip(1) &&
                        rest.next(rss_pages);
  if (!complete) return std::nullopt;
  stat.cpu_time = of_ticks(user + system);
  stat.children_cpu_time = of_ticks(children_user + children_system);
  static const std::uint64_t page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  stat.rss_bytes = rss_pages * page;
  stat.ignores_children = rest.skip(8) && rest.next(ignored) && (ignored >> (SIGCHLD - 1) & 1) != 0;
  return stat;
}

ProcFs::ProcFs(const std::filesystem::path& root)
    : folder_(root / "proc"), stat_(folder_ / "stat"), memory_(folder_ / "meminfo") {
  buffer_.resize(16384);
}

int ProcFs::folder() const {
  int fd = open_.get();
  if (fd >= 0) return fd;
  fd = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) open_.reset(fd);
  return fd;
}

int ProcFs::read(const char* path) {
  buffer_.resize(buffer_.capacity());
  const int fd = ::openat(folder(), path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  std::size_t size = 0;
  for (;;) {
    if (size == buffer_.size()) buffer_.resize(2 * size);
    const ssize_t n = ::read(fd, buffer_.data() + size, buffer_.size() - size);
    if (n > 0) {
      size += static_cast<std::size_t>(n);
      continue;
    }
    const int err = n < 0 ? errno : 0;
    if (err == EINTR) continue;
    ::close(fd);
    buffer_.resize(size);
    return err;
  }
}

Error ProcFs::error(const char* path, int err) const {
  // ESRCH: the process ended between opening and reading.
  return system_error(fmt::format("cannot read {}/{}", folder_.string(), path),
                      err == ESRCH ? ENOENT : err);
}

Result<ProcessStat> ProcFs::stat(pid_t pid) {
  std::array<char, 48> path;
  *fmt::format_to(path.data(), "{}/stat", pid) = '\0';
  if (const int err = read(path.data()); err != 0) return tl::unexpected(error(path.data(), err));
  auto stat = parse_process_stat(buffer_);
  if (!stat) {
    return fail(Errc::kCorrupt, fmt::format("{}/{} is not a process's status: '{}'",
                                            folder_.string(), path.data(), trim(buffer_)));
  }
  return std::move(*stat);
}

bool ProcFs::children(pid_t pid, int threads, std::vector<pid_t>& out) {
  std::array<char, 64> path;
  if (threads <= 1) {
    *fmt::format_to(path.data(), "{}/task/{}/children", pid, pid) = '\0';
    if (read(path.data()) != 0) return false;
    append_pids(buffer_, out);
    return true;
  }
  *fmt::format_to(path.data(), "{}/task", pid) = '\0';
  const int threads_folder = ::openat(folder(), path.data(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (threads_folder < 0) return false;
  std::vector<pid_t> tasks;
  append_numeric_names(threads_folder, tasks);
  bool any = false;
  for (const pid_t task : tasks) {
    *fmt::format_to(path.data(), "{}/task/{}/children", pid, task) = '\0';
    if (read(path.data()) != 0) continue;
    any = true;
    append_pids(buffer_, out);
  }
  return any;
}

void ProcFs::all(std::vector<pid_t>& out) {
  const int opened = ::openat(folder(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened >= 0) append_numeric_names(opened, out);
}

std::size_t ProcFs::count_estimate() const {
  // The kernel counts every process as a link of /proc.
  struct stat status {};
  return fstat(folder(), &status) == 0 ? static_cast<std::size_t>(status.st_nlink) : 0;
}

std::string ProcFs::command_line(pid_t pid) {
  if (read(fmt::format("{}/cmdline", pid).c_str()) != 0) return {};
  std::string text = buffer_.substr(0, buffer_.find_last_not_of('\0') + 1);
  std::ranges::replace(text, '\0', ' ');
  return text;
}

std::string ProcFs::environment(pid_t pid) {
  if (read(fmt::format("{}/environ", pid).c_str()) != 0) return {};
  return buffer_;
}

std::optional<pid_t> ProcFs::own_pid(pid_t pid) {
  if (read(fmt::format("{}/status", pid).c_str()) != 0) return std::nullopt;
  const std::string_view text = buffer_;
  constexpr std::string_view kKey = "\nNSpid:";
  const auto at = text.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  const auto line = text.substr(at + kKey.size());
  std::vector<pid_t> pids;
  append_pids(line.substr(0, line.find('\n')), pids);
  if (pids.size() < 2 || pids.back() == pid) return std::nullopt;
  return pids.back();
}

std::optional<std::uint32_t> ProcFs::user(pid_t pid) {
  if (read(fmt::format("{}/status", pid).c_str()) != 0) return std::nullopt;
  const auto uid = field(buffer_, "Uid:");
  if (!uid || *uid > 0xffffffff) return std::nullopt;
  return static_cast<std::uint32_t>(*uid);
}

// The folder of a process belongs to its effective user, even where its files do not (proc(5)).
std::optional<std::uint32_t> ProcFs::effective_user(pid_t pid) {
  std::array<char, 16> path;
  *fmt::format_to(path.data(), "{}", pid) = '\0';
  struct stat status {};
  if (fstatat(folder(), path.data(), &status, 0) != 0) return std::nullopt;
  return status.st_uid;
}

std::string ProcFs::cgroup(pid_t pid) {
  return read(fmt::format("{}/cgroup", pid).c_str()) == 0 ? buffer_ : std::string{};
}

std::optional<ProcessMemory> ProcFs::memory(pid_t pid) {
  if (read(fmt::format("{}/smaps_rollup", pid).c_str()) != 0) return std::nullopt;
  const auto pss = field(buffer_, "Pss:");
  const auto clean = field(buffer_, "Private_Clean:");
  const auto dirty = field(buffer_, "Private_Dirty:");
  if (!pss || !clean || !dirty) return std::nullopt;
  const auto huge = field(buffer_, "Private_Hugetlb:").value_or(0);
  return ProcessMemory{*pss * 1024, (*clean + *dirty + huge) * 1024};
}

Result<ProcFs::Machine> ProcFs::machine(HostTime at) {
  auto stat = stat_.read();
  if (!stat) return forward_error(stat);
  // user nice system idle iowait irq softirq steal: what the hypervisor took is neither busy nor
  // idle, and guest time is in user already.
  std::array<std::uint64_t, 7> t{};
  if (!stat->starts_with("cpu ")) {
    return fail(Errc::kCorrupt, fmt::format("{}/stat has no line 'cpu'", folder_.string()));
  }
  Numbers numbers(stat->substr(4));
  for (auto& value : t) {
    if (!numbers.next(value)) {
      return fail(Errc::kCorrupt, fmt::format("{}/stat: too few CPU times", folder_.string()));
    }
  }
  Machine machine;
  machine.reading.at = at;
  const std::uint64_t busy = t[0] + t[1] + t[2] + t[5] + t[6];
  machine.reading.busy_cpu_time = of_ticks(busy);
  machine.reading.total_cpu_time = of_ticks(busy + t[3] + t[4]);
  machine.forks = field(*stat, "processes ");
  if (machine.forks == 0u) machine.forks.reset();  // a sandbox that does not count

  auto memory = memory_.read();
  if (!memory) return forward_error(memory);
  const auto total = field(*memory, "MemTotal:");
  const auto available = field(*memory, "MemAvailable:");
  if (!total || !available || *available > *total) {
    return fail(Errc::kCorrupt,
                fmt::format("{}/meminfo lacks MemTotal or MemAvailable", folder_.string()));
  }
  machine.reading.memory_used_bytes = (*total - *available) * 1024;
  return machine;
}

HostTime ProcFs::start_time(std::uint64_t start_ticks) {
  return HostTime{of_ticks(start_ticks) - ClockPoint::now().suspended};
}

bool in_pid_namespace(const std::filesystem::path& root) {
  std::error_code err;
  const auto target = std::filesystem::read_symlink(root / "proc/self/ns/pid", err);
  return !err && target.string() != kInitialPidNamespace;
}

model::Rank rank_of(const Variable& variable) {
  model::Rank rank;
  for (const Launcher& launcher : kLaunchers) {
    rank.global = number_of(variable, launcher.rank);
    if (!rank.global) continue;
    rank.local = number_of(variable, launcher.local_rank);
    rank.world_size = number_of(variable, launcher.world_size);
    rank.launcher = launcher.name;
    break;
  }
  rank.job = text_of(variable, "SLURM_JOB_ID");
  rank.step = text_of(variable, "SLURM_STEP_ID");
  return rank;
}

model::Rank rank_in(std::string_view environment) {
  const std::string ended = std::string(1, '\0').append(environment).append(1, '\0');
  return rank_of([&](const char* name) -> const char* {
    const std::string entry = std::string(1, '\0').append(name).append(1, '=');
    const auto at = ended.find(entry);
    return at == ended.npos ? nullptr : ended.c_str() + at + entry.size();
  });
}

// Not by getpwuid, which a static program cannot use everywhere: users of a directory service have
// their name in the environment.
std::string user_here(const std::filesystem::path& passwd) {
  const std::string number = std::to_string(::geteuid());
  const std::string text = read_file(passwd).value_or(std::string());
  for (const auto line : split(text, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() > 2 && fields[2] == number) return std::string(fields[0]);
  }
  const std::string named = text_of(::getenv, "USER");
  return named.empty() ? number : named;
}

std::string node_list_of(const Variable& variable) {
  std::string nodes = text_of(variable, "SLURM_JOB_NODELIST");
  return nodes.empty() ? text_of(variable, "SLURM_NODELIST") : nodes;
}

std::string boot_id(const std::filesystem::path& proc) {
  const auto text = read_file(proc / "sys/kernel/random/boot_id");
  return text ? text->substr(0, text->find('\n')) : std::string();
}

}  // namespace jouleprof::spans

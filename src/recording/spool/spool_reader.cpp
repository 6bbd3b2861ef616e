#include "recording/spool/spool_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/file.h"
#include "recording/spool/frame.h"

namespace jouleprof::spool {

// --- The files of one traced process, and how far they were read ---

struct SpoolReader::File {
  std::filesystem::path path;
  std::uint64_t taken = 0;  // bytes
  std::uint64_t size = 0;   // at the last poll
  bool begun = false;       // its head was read
  bool damaged = false;
  bool finished = false;  // nothing will be added to it
  bool removed = false;
};

struct SpoolReader::Process {
  SpoolProcess about;
  std::map<std::uint32_t, File> files;  // by segment
  bool ended = false;
  model::ActivitySink* sink = nullptr;
  TraceCheck check;
  model::SpoolPosition resumed;             // an earlier reader took what lies before
  std::set<std::string, std::less<>> said;  // complaints already made

  // Adds a file; again does nothing.
  void add_file(std::uint32_t segment, std::filesystem::path path);
  // Whether a file is missing that must have been made before one that is here.
  bool skips_files() const;

  // Takes one frame. False: its payload is invalid.
  bool take(const Frame& frame, const File& file, SpoolConsumer& consumer);
  // The file's first frame.
  bool begin(const Frame& frame, std::uint32_t segment, File& file, SpoolConsumer& consumer);

 private:
  template <class Item>
  bool define(FieldReader& in, std::string_view what, const File& file, SpoolConsumer& consumer);
  void complain(const File& file, std::string_view what, SpoolConsumer& consumer);
};

// Each complaint once for each process: a whole file can be full of one.
void SpoolReader::Process::complain(const File& file, std::string_view what,
                                    SpoolConsumer& consumer) {
  if (said.contains(what)) return;
  said.emplace(what);
  consumer.warn(
      fmt::format("{}: {}; this part of the trace is left out", file.path.string(), what));
}

void SpoolReader::Process::add_file(std::uint32_t segment, std::filesystem::path path) {
  if (segment < resumed.file) return;
  const bool within = segment == resumed.file && resumed.bytes > 0;
  files.try_emplace(
      segment, File{.path = std::move(path), .taken = within ? resumed.bytes : 0, .begun = within});
}

bool SpoolReader::Process::skips_files() const {
  return !files.empty() && files.size() <= files.rbegin()->first - resumed.file;
}

bool SpoolReader::Process::begin(const Frame& frame, std::uint32_t segment, File& file,
                                 SpoolConsumer& consumer) {
  FieldReader in(frame.payload);
  Header header;
  fields(header, in);
  if (frame.type != static_cast<std::uint8_t>(FrameType::kHeader) || !in.ok() ||
      header.process.pid != about.pid || header.start != about.start || header.segment != segment) {
    return false;
  }
  file.begun = true;
  if (sink != nullptr) return true;
  static_cast<model::TracedProcess&>(about) = std::move(header.process);
  sink = &consumer.process(about);
  return true;
}

template <class Item>
bool SpoolReader::Process::define(FieldReader& in, std::string_view what, const File& file,
                                  SpoolConsumer& consumer) {
  std::uint32_t id = 0;
  in.get(id);
  Item part;
  fields(part, in);
  if (!in.ok()) return false;
  if (const auto problem = check.define(id, part); !problem.empty()) {
    complain(file, fmt::format("{} {}", what, problem), consumer);
  } else {
    sink->define(id, part);
  }
  return true;
}

bool SpoolReader::Process::take(const Frame& frame, const File& file, SpoolConsumer& consumer) {
  FieldReader in(frame.payload);
  switch (FrameType{frame.type}) {
    case FrameType::kHeader:
      return false;
    case FrameType::kDevice:
      return define<model::TracedDevice>(in, "a device", file, consumer);
    case FrameType::kClass:
      return define<model::KernelClass>(in, "a kernel signature", file, consumer);
    case FrameType::kLayer:
      return define<model::Layer>(in, "a layer", file, consumer);
    case FrameType::kRange:
      return define<model::Range>(in, "a range", file, consumer);
    case FrameType::kScope:
      return define<model::Scope>(in, "a scope", file, consumer);
    case FrameType::kChunk: {
      model::ActivityChunk chunk;
      fields(chunk, in);
      if (!in.ok()) return false;
      if (const auto problem = check.add(chunk, about.bin); !problem.empty()) {
        complain(file, fmt::format("a chunk {}", problem), consumer);
      } else {
        sink->add(chunk);
      }
      return true;
    }
    case FrameType::kStatus: {
      model::TraceStatus status;
      fields(status, in);
      if (in.ok()) sink->status(status);
      return in.ok();
    }
    case FrameType::kEnd:
      ended = true;
      return true;
  }
  complain(
      file,
      fmt::format("frame type {} is unknown: a newer version of the library wrote it", frame.type),
      consumer);
  return true;
}

// --- The folder of spools ---

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;

struct Name {
  pid_t pid = 0;
  std::int64_t start = 0;
  std::uint32_t segment = 0;
};

// PID-STARTNS-NNNN.spool
std::optional<Name> parse_name(std::string_view text) {
  Name name;
  const char* end = text.data() + text.size();
  const auto part = [&](const char* at, auto& value, std::string_view after) -> const char* {
    if (at == nullptr) return nullptr;
    const auto [stop, err] = std::from_chars(at, end, value);
    const std::string_view rest(stop, static_cast<std::size_t>(end - stop));
    if (err != std::errc{}) return nullptr;
    return rest.starts_with(after) ? stop + after.size() : nullptr;
  };
  const char* at = part(text.data(), name.pid, "-");
  at = part(at, name.start, "-");
  at = part(at, name.segment, ".spool");
  if (at != end || name.pid < 0 || name.start < 0) return std::nullopt;
  return name;
}

// Reads on from `offset` until `size` bytes are there or the file ends.
bool read_at(int fd, std::uint64_t offset, std::size_t size, std::string& bytes) {
  bytes.resize(size);
  std::size_t have = 0;
  while (have < size) {
    const ssize_t got =
        ::pread(fd, bytes.data() + have, size - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return true;
}

}  // namespace

SpoolReader::SpoolReader(fs::path folder) : folder_(std::move(folder)) {}
SpoolReader::~SpoolReader() = default;
SpoolReader::SpoolReader(SpoolReader&&) noexcept = default;
SpoolReader& SpoolReader::operator=(SpoolReader&&) noexcept = default;

Result<void> SpoolReader::find_files(SpoolConsumer& consumer) {
  auto names = list_folder(folder_);
  if (!names) return forward_error(names);
  for (const auto& text : *names) {
    const auto name = parse_name(text);
    if (!name) {
      if (text.ends_with(".spool") && passed_over_.insert(text).second) {
        consumer.warn(fmt::format("{} does not have the name of a spool file; it is left out",
                                  (folder_ / text).string()));
      }
      continue;
    }
    auto& process = processes_[{name->start, name->pid}];
    if (!process) {
      process = std::make_unique<Process>();
      process->about.pid = name->pid;
      process->about.start = HostTime{Duration{name->start}};
    }
    process->add_file(name->segment, folder_ / text);
  }
  return find_skipped();
}

// A folder that is listed while files are made in it may show one of them and not the one made
// before; a listing begun after the later one was seen has both.
Result<void> SpoolReader::find_skipped() {
  const auto skipped = [](const auto& entry) { return entry.second->skips_files(); };
  if (std::ranges::none_of(processes_, skipped)) return {};
  auto names = list_folder(folder_);
  if (!names) return forward_error(names);
  for (const auto& text : *names) {
    const auto name = parse_name(text);
    if (!name) continue;
    const auto found = processes_.find({name->start, name->pid});
    if (found == processes_.end()) continue;
    auto& process = *found->second;
    if (!process.files.empty() && name->segment < process.files.rbegin()->first) {
      process.add_file(name->segment, folder_ / text);
    }
  }
  return {};
}

// All of the frames that are there.
bool SpoolReader::read_process(Process& process, SpoolConsumer& consumer) {
  bool any = false;
  for (auto& [segment, file] : process.files) {
    if (file.damaged || file.removed) continue;
    const auto damaged = [&](std::string_view what) {
      file.damaged = true;
      consumer.warn(fmt::format("{} is damaged at byte {} ({}); the rest of it is left out",
                                file.path.string(), file.taken, what));
    };
    // Never waits, whatever lies under that name.
    const Descriptor fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat now {};
    if (!fd || ::fstat(fd.get(), &now) != 0) {
      damaged(std::strerror(errno));
      continue;
    }
    if (!S_ISREG(now.st_mode)) {
      damaged("it is not an ordinary file");
      continue;
    }
    file.size = static_cast<std::uint64_t>(now.st_size);
    std::size_t need = kReadAtOnce;
    while (!file.damaged && file.taken < file.size) {
      if (!read_at(fd.get(), file.taken, need, buffer_)) {
        damaged(std::strerror(errno));
        break;
      }
      std::string_view rest = buffer_;
      if (file.taken == 0) {
        if (rest.size() < kMagic.size()) break;
        if (!rest.starts_with(kMagic)) {
          damaged("it does not begin as a spool file");
          break;
        }
        rest.remove_prefix(kMagic.size());
      }
      Frame frame = first_frame(rest);
      if (frame.state == Frame::State::kPartial) {
        const std::size_t wanted = frame.size + kMagic.size();
        // All that is there has been read; or the frame is longer than a piece.
        if (file.taken + buffer_.size() >= file.size || wanted <= need) break;
        need = wanted;
        continue;
      }
      for (; frame.state == Frame::State::kWhole; frame = first_frame(rest)) {
        const bool fine = file.begun ? process.take(frame, file, consumer)
                                     : process.begin(frame, segment, file, consumer);
        if (!fine) {
          damaged("a frame has an invalid payload");
          break;
        }
        any = true;
        file.taken += frame.size + (file.taken == 0 ? kMagic.size() : 0);
        rest.remove_prefix(frame.size);
      }
      if (!file.damaged && frame.state == Frame::State::kDamaged) damaged("wrong checksum");
      need = kReadAtOnce;
    }
    const bool last = segment == process.files.rbegin()->first;
    if (!last && !file.damaged && file.taken < file.size) damaged("it breaks off");
    file.finished = (!last || process.ended) && !file.damaged && file.taken == file.size;
  }
  return any;
}

Result<bool> SpoolReader::poll(SpoolConsumer& consumer) {
  // First the names, then the files: one that has a successor by now will not grow any more.
  if (auto found = find_files(consumer); !found) return forward_error(found);
  bool any = false;
  for (auto& [key, process] : processes_) any |= read_process(*process, consumer);
  return any;
}

void SpoolReader::resume(const model::Trace& so_far, model::ActivitySink& sink) {
  if (!so_far.position) return;
  auto& process = processes_[{so_far.position->start.time_since_epoch().count(), so_far.pid}];
  process = std::make_unique<Process>();
  process->about = {so_far, so_far.position->start};
  process->sink = &sink;
  process->check = TraceCheck(so_far);
  process->resumed = *so_far.position;
}

std::optional<model::SpoolPosition> SpoolReader::position(const SpoolProcess& process) const {
  const auto found = processes_.find({process.start.time_since_epoch().count(), process.pid});
  if (found == processes_.end()) return std::nullopt;
  const auto& files = found->second->files;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    if (file->second.taken > 0) {
      return model::SpoolPosition{process.start, file->first, file->second.taken};
    }
  }
  return std::nullopt;
}

void SpoolReader::remove_taken() {
  for (auto& [key, process] : processes_) {
    for (auto& [segment, file] : process->files) {
      if (file.finished && !file.removed) file.removed = ::unlink(file.path.c_str()) == 0;
    }
  }
}

std::vector<pid_t> SpoolReader::open_processes() const {
  std::vector<pid_t> pids;
  for (const auto& [key, process] : processes_) {
    if (!process->ended) pids.push_back(process->about.pid);
  }
  return pids;
}

bool SpoolReader::damaged() const {
  for (const auto& [key, process] : processes_) {
    for (const auto& [segment, file] : process->files) {
      if (file.damaged) return true;
    }
  }
  return false;
}

bool SpoolReader::left_over() const {
  for (const auto& [key, process] : processes_) {
    for (const auto& [segment, file] : process->files) {
      if (file.damaged || file.taken < file.size) return true;
    }
  }
  return false;
}

FolderLock FolderLock::take(const std::filesystem::path& folder, int how) {
  FolderLock lock;
  lock.fd_ = Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  lock.busy_ = lock.fd_ && ::flock(lock.fd_.get(), how | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return lock;
}

FolderLock FolderLock::of_reader(const std::filesystem::path& folder) {
  return take(folder, LOCK_EX);
}

FolderLock FolderLock::of_visitor(const std::filesystem::path& folder) {
  return take(folder, LOCK_SH);
}

}  // namespace jouleprof::spool

// Files: small ones read whole, folders listed, and files that are replaced at once. Errors name
// the path.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process/descriptor.h"
#include "base/result.h"

namespace jouleprof {

// The Error of a failed system call: `what` is what was tried ("cannot open /x"), `err` its errno.
Error system_error(std::string_view what, int err);
// A system error for returning as a Result's.
tl::unexpected<Error> system_failure(std::string_view what, int err);

// The whole content. Works for /proc and /sys, whose sizes are not known in advance.
// Errors: not_found, permission_denied, unavailable; invalid_argument when longer than `limit`.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t limit = std::size_t{1} << 30);

// A text without its white space at both ends.
std::string_view trim(std::string_view text);

// The first line of a file, trimmed: what most /sys attributes are.
Result<std::string> read_attribute(const std::filesystem::path& path);

// A /sys attribute that holds one whole number. Errors: as read_file; corrupt when it is no number.
Result<long long> read_integer(const std::filesystem::path& path);

// Names (not paths) in a folder, sorted. Errors: as read_file.
Result<std::vector<std::string>> list_folder(const std::filesystem::path& path);
// Like list_folder(); none where the folder cannot be listed.
std::vector<std::string> names_in(const std::filesystem::path& path);
// The folders among names_in(), without links to folders. Most file systems have the kind in the
// list, so that no file is looked at.
std::vector<std::string> folders_in(const std::filesystem::path& path);

// A small file that is read again and again: opened once.
// For files of /proc and /sys, which say something new at each read; opening them costs as much as
// reading. A file that another takes the place of is not noticed.
// Thread safety: none.
class KeptFile {
 public:
  explicit KeptFile(std::filesystem::path path) : path_(std::move(path)) {}
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;

  // What the file holds now, up to `limit` bytes; valid until the next read. After a failure it is
  // opened anew. Errors: as read_file's.
  Result<std::string_view> read(std::size_t limit = std::string::npos);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  OwnDescriptor file_;
  std::string buffer_;
};

// A file that is written next to its target and takes its place once it is complete.
// Until take_place() the target stays as it was, and so it does when that is never called. A target
// that is a symbolic link stays one: the file that it names is replaced. The new file has the old
// one's permissions.
// Thread safety: none.
class NewFile {
 public:
  // Makes an empty file in the folder of `target`. Errors: of the file system.
  static Result<NewFile> next_to(const std::filesystem::path& target);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();  // removes the file, unless it has taken its place

  const std::filesystem::path& path() const { return path_; }      // where to write
  const std::filesystem::path& target() const { return target_; }  // without symbolic links
  // Puts it on the disk and in its place. Errors: of the file system; then the target stays.
  Result<void> take_place();

 private:
  NewFile(std::filesystem::path path, std::filesystem::path target)
      : path_(std::move(path)), target_(std::move(target)) {}
  std::filesystem::path path_;  // empty: taken its place
  std::filesystem::path target_;
};

// A second name of a file that another is about to take the place of.
// Thread safety: none.
class OldFile {
 public:
  // Keeps nothing where there is no such file, or where the file system has no second names.
  static OldFile keep(const std::filesystem::path& path);
  OldFile(OldFile&& other) noexcept;
  OldFile& operator=(OldFile&&) = delete;
  ~OldFile();  // removes the second name

  // Gives it its name back, whatever has that by now. False: nothing was kept, or as the system
  // says.
  bool put_back();

 private:
  OldFile(std::filesystem::path path, std::filesystem::path second)
      : path_(std::move(path)), second_(std::move(second)) {}
  std::filesystem::path path_;
  std::filesystem::path second_;  // empty: nothing is kept
};

// A new folder among the system's temporary files, which is removed with all that it holds.
class TemporaryFolder {
 public:
  // Errors: of the file system.
  static Result<TemporaryFolder> create();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// An environment variable; empty: it is not set.
std::string environment(const char* name);
// Where a user's files of one kind are: what `variable`, such as XDG_DATA_HOME, names, else `usual`
// in the home folder. Empty: there is none.
std::filesystem::path user_folder(const char* variable, std::string_view usual);

// The file that a symbolic link names, also where that does not exist yet; else `path`.
std::filesystem::path without_links(std::filesystem::path path);

// Whether both names are of one ordinary file: by device and inode, or, where neither exists yet,
// by their text.
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);

// --- A small file that several processes rewrite ---

// Excludes other processes and threads that lock the same path, until it is destroyed. Creates the
// file at `path`, which stays, and its folder; lock a file next to the one to be replaced. On a
// file system without locks it excludes nothing.
class FileLock {
 public:
  // Waits for another holder for at most 10 s. Errors: of the file system; timeout.
  static Result<FileLock> take(const std::filesystem::path& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

// Gives the file a new content at once: a reader, also after a crash, finds the old content or the
// new one. Creates the folder. Two writers at one time need a FileLock. Errors: of the file system;
// then the old content stays.
Result<void> replace_file(const std::filesystem::path& path, std::string_view content);

// Puts `more` at the end of a file that has `size` bytes, and on the disk. Errors: corrupt where it
// has another size: another program has changed it; of the file system, and then a part of `more`
// may be there.
Result<void> append_to_file(const std::filesystem::path& path, std::size_t size,
                            std::string_view more);

}  // namespace jouleprof

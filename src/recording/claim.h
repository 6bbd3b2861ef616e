// The name of a recording that is about to be written.
#pragma once

#include <filesystem>

#include "base/process/descriptor.h"
#include "base/result.h"

namespace jouleprof::recording {

// While it lives, no other process can claim the same name: two runs cannot write one file. Next
// to the file lies "FILE-lock", which goes with the claim. On a file system without locks, or where
// none can be made, it excludes nothing. Thread safety: none.
class Claim {
 public:
  // Changes nothing but for the lock. Errors: invalid_argument when the file exists and may not be
  // overwritten, is none that can be, or is being written by another process; as the system says
  // for a folder that takes no file.
  static Result<Claim> take(const std::filesystem::path& path, bool overwrite);
  Claim(Claim&& other) noexcept;
  Claim& operator=(Claim&& other) noexcept;
  ~Claim();

  const std::filesystem::path& path() const { return path_; }  // absolute, without symbolic links
  bool replaces() const { return replaces_; }                  // a file that exists

 private:
  Claim(std::filesystem::path path, bool replaces) : path_(std::move(path)), replaces_(replaces) {}
  Result<void> lock();
  void release();

  std::filesystem::path path_;
  bool replaces_ = false;
  OwnDescriptor lock_;
};

// Whether a Claim of any process holds the name. Changes nothing.
bool is_claimed(const std::filesystem::path& path);

}  // namespace jouleprof::recording

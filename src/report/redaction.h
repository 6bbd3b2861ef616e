// What --redact leaves out of a page or figure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/activity/activity_profile.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::report {

// Replaces words in sentences, and absolute paths by "(redacted)".
class Redactor {
 public:
  // What each secret becomes, the longest first. Secrets of less than three bytes are left: they
  // may be ordinary words.
  explicit Redactor(std::vector<std::pair<std::string, std::string>> replaced);

  void redact(std::string& sentence) const;

 private:
  std::vector<std::pair<std::string, std::string>> replaced_;
};

// Without command line, host, user, folders, and the names, command lines and UUIDs of processes
// and devices. Where sentences name one of these, it becomes "(redacted)". Names of windows,
// kernels and layers stay: they are what the report is about.
model::Profile redacted(model::Profile profile);

// Without the names of the traced programs. The rows of processes among the layers keep their pids.
std::vector<model::ActivityProfile> redacted(std::vector<model::ActivityProfile> profiles,
                                             const model::Recording& recording);

}  // namespace jouleprof::report

// What --redact leaves out of a page or figure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/profile.h"

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

}  // namespace jouleprof::report

// For tests: a calibration file in a temporary folder.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "tests/support/temp_tree.h"

namespace jouleprof::meters::nvml {

// Points XDG_STATE_HOME to a temporary folder, and restores the variable afterwards.
class StateFolder : public testing::Test {
 protected:
  StateFolder() {
    if (const char* state = std::getenv("XDG_STATE_HOME")) before_ = state;
    setenv("XDG_STATE_HOME", tree_.root().c_str(), 1);
  }
  ~StateFolder() override {
    if (before_) {
      setenv("XDG_STATE_HOME", before_->c_str(), 1);
    } else {
      unsetenv("XDG_STATE_HOME");
    }
  }
  void write(const std::string& text) { tree_.write("jouleprof/calibration.json", text); }

  TempTree tree_;

 private:
  std::optional<std::string> before_;
};

}  // namespace jouleprof::meters::nvml

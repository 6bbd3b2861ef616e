// A line of status at the bottom of the terminal that leaves the command's output alone.
#pragma once

#include <string>

namespace jouleprof::cli {

// Keeps the terminal's last row out of its scrolling region and writes there. Does nothing where
// stderr is no terminal. Restores the terminal when destroyed.
class StatusBar {
 public:
  explicit StatusBar(bool wanted);
  StatusBar(const StatusBar&) = delete;
  StatusBar& operator=(const StatusBar&) = delete;
  ~StatusBar();

  int width() const;  // columns of the terminal; 0 when there is none
  void show(const std::string& line);

 private:
  void reserve(int rows);

  bool active_ = false;
  int rows_ = 0;  // that the region was made for
};

}  // namespace jouleprof::cli

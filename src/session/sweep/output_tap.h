// Reads along what the command prints.
#pragma once

#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "base/process/descriptor.h"
#include "base/result.h"
#include "session/sweep/run_measures.h"

namespace jouleprof::session {

// The training loss that a line has, such as "epoch 3 loss: 0.41" or "{'train_loss': 0.41}", not
// one of validation; not a number where it is "nan" or infinite. Absent where the line has none.
std::optional<double> loss_in(const std::string& line);

// What a command printed.
struct Printed {
  std::vector<PrintedNumber> numbers;  // that match the expression
  std::vector<PrintedNumber> losses;
};

// While it exists, what this process and its children write to the standard output passes through a
// pipe to where it went before, and the numbers in it that match an expression are kept, and the
// losses. The command does not see a terminal then. One at a time in a process.
class OutputTap {
 public:
  // `expression`: valid, with one group; empty: no number is kept. Errors: no descriptors are left.
  static Result<std::unique_ptr<OutputTap>> open(const std::string& expression);
  OutputTap(const OutputTap&) = delete;
  OutputTap& operator=(const OutputTap&) = delete;
  ~OutputTap();

  // Ends the tap. Processes that still write to the pipe are no longer read. Errors: unavailable,
  // where reading along ended before the command did; its output got through nevertheless.
  Result<Printed> finish();

 private:
  OutputTap(const std::string& expression, Descriptor standard_output, Descriptor pipe,
            Descriptor wake);
  void copy(bool reads_along);
  void take(std::string_view text);
  void match(const std::string& line);

  const std::optional<std::regex> expression_;
  const Descriptor standard_output_;  // where it went before
  const Descriptor pipe_;
  const Descriptor wake_;
  std::string line_;  // begun
  Printed found_;
  std::string problem_;  // why the numbers are not all there
  std::thread thread_;
};

}  // namespace jouleprof::session

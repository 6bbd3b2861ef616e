// The lines of a text, with their numbers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "importers/importer.h"

namespace jouleprof::importers {

class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);  // some editors add it
  }

  // Goes to the next line; false at the end.
  bool next();

  std::string_view text() const { return text_; }  // without its line end
  std::size_t number() const { return number_; }   // from one
  // False for a last line without a line end: it may have been cut off in the middle of a number.
  bool ended() const { return ended_; }

 private:
  std::string_view rest_;
  std::string_view text_;
  std::size_t number_ = 0;
  bool ended_ = false;
};

// corrupt: "PATH, line N: MESSAGE".
tl::unexpected<Error> fail_at(const SourceText& source, std::size_t line, std::string_view message);

// A part of a file for a one-line message: short, without control characters.
std::string show(std::string_view text, std::size_t longest = 40);

// The warning about a last line that was left out.
std::string cut_off_warning(std::string_view path, std::size_t line);

}  // namespace jouleprof::importers

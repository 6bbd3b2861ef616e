#include "importers/lines.h"

#include <fmt/format.h>

#include <algorithm>

namespace jouleprof::importers {

bool Lines::next() {
  if (rest_.empty()) return false;
  const auto end = rest_.find('\n');
  ended_ = end != std::string_view::npos;
  text_ = rest_.substr(0, end);
  rest_.remove_prefix(ended_ ? end + 1 : rest_.size());
  if (text_.ends_with('\r')) text_.remove_suffix(1);
  ++number_;
  return true;
}

tl::unexpected<Error> fail_at(const SourceText& source, std::size_t line,
                              std::string_view message) {
  return fail(Errc::kCorrupt, fmt::format("{}, line {}: {}", source.path, line, message));
}

std::string show(std::string_view text, std::size_t longest) {
  std::string shown(text.substr(0, longest));
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, '?');
  return fmt::format("'{}{}'", shown, text.size() > longest ? "..." : "");
}

std::string cut_off_warning(std::string_view path, std::size_t line) {
  return fmt::format(
      "{}, line {}: the last line has no line end, so it may be cut off: it is left out", path,
      line);
}

}  // namespace jouleprof::importers

#include "report/format/format.h"

#include <algorithm>
#include <array>

namespace jouleprof::report {

#define JOULEPROF_FORMAT(name) extern const Format name##_format;
#include "report/formats.inc"
#undef JOULEPROF_FORMAT

namespace {

constexpr std::array kFormats{
#define JOULEPROF_FORMAT(name) &name##_format,
#include "report/formats.inc"
#undef JOULEPROF_FORMAT
};

}  // namespace

std::span<const Format* const> formats() { return kFormats; }

const Format* find_format(std::string_view name) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(),
                                  [&](const Format* f) { return f->name == name; });
  return found == kFormats.end() ? nullptr : *found;
}

const Format* format_of_file(std::string_view path) {
  const Format* best = nullptr;
  for (const Format* format : kFormats) {
    std::string_view name = path;
    if (!format->is_packed && name.ends_with(".gz")) name.remove_suffix(3);
    if (!name.ends_with(format->extension)) continue;
    if (best == nullptr || format->extension.size() > best->extension.size()) best = format;
  }
  return best;
}

}  // namespace jouleprof::report

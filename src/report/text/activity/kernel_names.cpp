#include "report/text/activity/kernel_names.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "report/cells.h"

namespace jouleprof::report {
namespace {

constexpr std::string_view kDots = "...";

// "void f<T>(T*)" is "f<T>". The parentheses of "(anonymous namespace)" and of function types
// within the template arguments stay.
std::string_view core_of(std::string_view name) {
  if (name.starts_with("void ")) name.remove_prefix(5);
  std::string_view rest = name;
  if (rest.ends_with(" const")) rest.remove_suffix(6);
  if (!rest.ends_with(')')) return name;
  int depth = 0;
  for (std::size_t i = rest.size(); i-- > 0;) {
    if (rest[i] == ')') ++depth;
    if (rest[i] == '(' && --depth == 0) {
      // After a blank it is no list of parameters: "memcpy (host to device)".
      return i > 0 && rest[i - 1] != ' ' ? rest.substr(0, i) : name;
    }
  }
  return name;
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                  a.begin());
}

// Where a character begins, at or before `i`.
std::size_t boundary(std::string_view text, std::size_t i) {
  while (i > 0 && i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) --i;
  return std::min(i, text.size());
}

std::string cut(std::string_view name, std::size_t width, std::size_t differs) {
  if (display_width(name) <= width) return std::string(name);
  if (width < 4 * kDots.size()) return fit(name, width);
  const std::size_t room = width - kDots.size();
  const std::size_t head = room * 2 / 5;
  const std::size_t tail = room - head;
  // Both ends show the difference.
  if (differs < head || differs + tail >= name.size()) {
    return std::string(name.substr(0, boundary(name, head))) + std::string(kDots) +
           std::string(name.substr(boundary(name, name.size() - tail)));
  }
  // A little before it, for the reader's bearings.
  const std::size_t from = boundary(name, std::max(head, differs - std::min(differs, tail / 4)));
  const std::size_t length = tail - kDots.size();
  return fit(std::string(name.substr(0, boundary(name, head))) + std::string(kDots) +
                 std::string(name.substr(from, boundary(name, from + length) - from)) +
                 std::string(kDots),
             width);
}

}  // namespace

std::vector<std::string> shortened_names(const std::vector<std::string>& names, std::size_t width) {
  std::vector<std::string_view> cores;
  for (const auto& name : names) cores.push_back(core_of(name));
  // In alphabetical order the most similar name is a neighbour.
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return cores[a] < cores[b]; });
  std::vector<std::size_t> differs(names.size());
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto a = order[i - 1];
    const auto b = order[i];
    if (cores[a] == cores[b]) {
      differs[b] = std::max(differs[b], differs[a]);
      continue;
    }
    const std::size_t common = common_prefix(cores[a], cores[b]);
    differs[a] = std::max(differs[a], common);
    differs[b] = std::max(differs[b], common);
  }
  std::vector<std::string> shortened;
  for (std::size_t i = 0; i < names.size(); ++i) {
    shortened.push_back(cut(cores[i], width, differs[i]));
  }
  return shortened;
}

}  // namespace jouleprof::report

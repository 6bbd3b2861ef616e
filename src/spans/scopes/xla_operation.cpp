#include "spans/scopes/xla_operation.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <utility>

#include "spans/scopes/scopes.h"

namespace jouleprof::scopes {
namespace {

constexpr std::string_view kRange = "Thunk:#";
constexpr std::string_view kName = "name=";

// Names that JAX gives to its own loops, branches and calls.
constexpr std::array<std::string_view, 17> kOwn = {"while",
                                                   "body",
                                                   "cond",
                                                   "scan",
                                                   "closed_call",
                                                   "core_call",
                                                   "named_call",
                                                   "checkpoint",
                                                   "remat",
                                                   "remat2",
                                                   "pjit",
                                                   "shard_map",
                                                   "rematted_computation",
                                                   "custom_jvp_call",
                                                   "custom_vjp_call",
                                                   "xla_call",
                                                   "body_fun"};

bool is_own(std::string_view name) {
  return name.starts_with("branch_") || std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end();
}

// Calls part(text) for what lies between slashes that are in no brackets.
template <class Part>
void each_part(std::string_view names, Part part) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= names.size(); ++i) {
    if (i < names.size() && names[i] == '(') ++depth;
    if (i < names.size() && names[i] == ')') --depth;
    if (i < names.size() && (names[i] != '/' || depth > 0)) continue;
    if (i > begin) part(names.substr(begin, i - begin));
    begin = i + 1;
  }
}

// Adds the scopes in `names`. A transformation holds scopes in brackets, a function its own name.
void add_scopes(std::string_view names, XlaOperation& to) {
  each_part(names, [&](std::string_view part) {
    const std::size_t bracket = part.find('(');
    if (bracket == std::string_view::npos || part.back() != ')') {
      if (!is_own(part)) to.path.emplace_back(part);
      return;
    }
    const std::string_view by = part.substr(0, bracket);
    if (by == "transpose") to.phase = model::Phase::kBackward;
    if (by == "jvp" && to.phase == model::Phase::kNone) to.phase = model::Phase::kForward;
    if (by != "jit" && by != "pjit" && by != "pmap") {
      add_scopes(part.substr(bracket + 1, part.size() - bracket - 2), to);
    }
  });
}

// Where the number that ends a name begins, with the line before it: "_6" of "Dense_6"; else npos.
std::size_t number_of(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  const bool numbered = end != std::string_view::npos && end + 1 < name.size() && name[end] == '_';
  return numbered ? end : std::string_view::npos;
}

// "Dense" of "Dense_6".
std::string type_of(const std::string& name) {
  const std::size_t number = number_of(name);
  return number > 0 ? name.substr(0, number) : name;
}

// The innermost layer of the path; the outermost one has the name of its type, as of PyTorch.
std::uint32_t layer_of(const std::vector<std::string>& path) {
  model::Layer layer;
  std::uint32_t id = model::kNone;
  for (std::size_t i = 0; i < path.size(); ++i) {
    layer.name = i < 2 ? path[i] : layer.name + "." + path[i];
    layer.type = type_of(path[i]);
    layer.parent = id;
    id = add_once(layer);
  }
  return id;
}

// Whether the last name is of a scope: operations of JAX's are in small letters, without a number.
bool is_scope(std::string_view last) {
  return std::isupper(static_cast<unsigned char>(last.front())) != 0 ||
         number_of(last) != std::string_view::npos;
}

// Scopes of ranges that a thread had before; none once the thread ends.
struct Known {
  struct Slot {
    std::size_t key = 0;  // 0: empty
    model::Scope scope;
  };
  using Slots = std::array<Slot, 4096>;

  Slots* slots = nullptr;
  bool ended = false;

  ~Known() {
    delete std::exchange(slots, nullptr);
    ended = true;
  }
};
constinit thread_local Known known;

}  // namespace

std::optional<XlaOperation> xla_operation(std::string_view range) {
  if (!range.starts_with(kRange)) return std::nullopt;
  range.remove_prefix(kRange.size());
  XlaOperation out;
  if (!range.starts_with(kName)) return out;
  range = range.substr(kName.size(), range.find_first_of(",#") - kName.size());
  std::string_view last;
  each_part(range, [&](std::string_view part) { last = part; });
  if (last.empty() || last.find('(') != std::string_view::npos || is_scope(last)) {
    add_scopes(range, out);
    return out;
  }
  add_scopes(range.substr(0, range.size() - last.size()), out);
  return out;
}

std::string short_range(std::string_view range) {
  constexpr std::string_view kModule = "hlo_module=";
  const std::size_t at = range.find(kModule);
  if (!range.starts_with("XlaModule:#") || at == std::string_view::npos) return std::string(range);
  range.remove_prefix(at + kModule.size());
  return std::string(model::kXlaModule) + std::string(range.substr(0, range.find_first_of(",#")));
}

std::optional<model::Scope> xla_scope(std::string_view range) noexcept {
  if (!range.starts_with(kRange)) return std::nullopt;
  try {
    if (known.ended) return std::nullopt;
    if (known.slots == nullptr) known.slots = new Known::Slots;
    const std::size_t key = std::hash<std::string_view>{}(range) | 1;
    Known::Slot& slot = (*known.slots)[(key >> 1) % known.slots->size()];
    if (slot.key == key) return slot.scope;
    const XlaOperation operation = *xla_operation(range);
    model::Scope scope;
    scope.phase = operation.phase;
    scope.layer = layer_of(operation.path);
    if (scope.phase == model::Phase::kNone && scope.layer != model::kNone) {
      scope.phase = model::Phase::kForward;  // inference
    }
    slot = {key, scope};
    return scope;
  } catch (...) {
    return std::nullopt;
  }
}

}  // namespace jouleprof::scopes

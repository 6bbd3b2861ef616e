#include <cstddef>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_set>

#include "apps/inject/trace.h"
#include "spans/scopes/range_stack.h"

namespace jouleprof::inject {
namespace {

namespace abi = abi::nvtx;

constexpr std::size_t kLongest = 512;
constexpr std::size_t kMostStrings = 100'000;

// A string for display: longer ones are cut.
std::string_view view(const char* text) {
  if (text == nullptr) return {};
  std::size_t length = 0;
  while (length != kLongest && text[length] != '\0') ++length;
  return {text, length};
}

// Wide text as UTF-8, in `into`.
std::string_view narrow(const wchar_t* text, char (&into)[kLongest]) {
  std::size_t length = 0;
  const auto put = [&](std::uint32_t byte) { into[length++] = static_cast<char>(byte); };
  for (; text != nullptr && *text != L'\0' && length + 4 <= kLongest; ++text) {
    auto c = static_cast<std::uint32_t>(*text);
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) c = 0xFFFD;
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xC0 | c >> 6);
      put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      put(0xE0 | c >> 12);
      put(0x80 | (c >> 6 & 0x3F));
      put(0x80 | (c & 0x3F));
    } else {
      put(0xF0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3F));
      put(0x80 | (c >> 6 & 0x3F));
      put(0x80 | (c & 0x3F));
    }
  }
  return {into, length};
}

// Strings that were registered, as handles: they live as long as the process.
const std::string* registered(std::string_view text) noexcept {
  // Without memory of the heap, and never destroyed.
  alignas(std::string) static char place[sizeof(std::string)];
  static const std::string* const other = new (place) std::string("other ranges");
  try {
    static std::mutex& mutex = *new std::mutex;
    static auto& all = *new std::unordered_set<std::string>;
    const std::scoped_lock lock(mutex);
    if (all.size() >= kMostStrings) return other;
    return &*all.emplace(text).first;
  } catch (...) {
    return other;
  }
}

// The name of a range; `text` is a buffer for converted text.
std::string_view name_of(const abi::EventAttributes* attributes, char (&text)[kLongest]) noexcept {
  constexpr std::size_t kNeeded = offsetof(abi::EventAttributes, message) + sizeof(abi::Message);
  if (attributes == nullptr || attributes->size < kNeeded) return {};
  const abi::Message& message = attributes->message;
  switch (attributes->message_type) {
    case abi::MessageType::kAscii:
      return view(message.ascii);
    case abi::MessageType::kUnicode:
      return narrow(message.unicode, text);
    case abi::MessageType::kRegistered:
      if (message.registered == nullptr) return {};
      return *static_cast<const std::string*>(message.registered);
    default:
      return {};
  }
}

int domain_push(abi::Domain domain, const abi::EventAttributes* attributes) noexcept {
  char text[kLongest];
  return scopes::push_range(domain, name_of(attributes, text));
}
int push_ex(const abi::EventAttributes* attributes) noexcept {
  return domain_push(nullptr, attributes);
}
int push_ascii(const char* text) noexcept { return scopes::push_range(nullptr, view(text)); }
int push_wide(const wchar_t* wide) noexcept {
  char text[kLongest];
  return scopes::push_range(nullptr, narrow(wide, text));
}
int pop() noexcept { return scopes::pop_range(nullptr); }
int domain_pop(abi::Domain domain) noexcept { return scopes::pop_range(domain); }

abi::RangeId start_ex(const abi::EventAttributes* attributes) noexcept {
  char text[kLongest];
  return scopes::start_range(name_of(attributes, text));
}
abi::RangeId start_ascii(const char* text) noexcept { return scopes::start_range(view(text)); }
abi::RangeId start_wide(const wchar_t* wide) noexcept {
  char text[kLongest];
  return scopes::start_range(narrow(wide, text));
}
abi::RangeId domain_start(abi::Domain, const abi::EventAttributes* attributes) noexcept {
  return start_ex(attributes);
}
void range_end(abi::RangeId id) noexcept { scopes::end_range(id); }
void domain_end(abi::Domain, abi::RangeId id) noexcept { scopes::end_range(id); }

abi::String register_ascii(abi::Domain, const char* text) noexcept {
  return registered(view(text));
}
abi::String register_wide(abi::Domain, const wchar_t* wide) noexcept {
  char text[kLongest];
  return registered(narrow(wide, text));
}
// A domain is identified by its name, whose handle it has.
abi::Domain create_ascii(const char* name) noexcept { return registered(view(name)); }
abi::Domain create_wide(const wchar_t* wide) noexcept {
  char text[kLongest];
  return registered(narrow(wide, text));
}

struct Places {
  abi::FunctionTable table = nullptr;
  unsigned size = 0;

  template <typename Declared, typename Ours>
  void fill(unsigned id, Ours* ours) const {
    Declared* const function = ours;  // as NVTX declares it
    if (id < size && table[id] != nullptr) {
      *table[id] = reinterpret_cast<abi::Function>(function);
    }
  }
};

bool places(const abi::CallbackTable& callbacks, abi::Module module, Places& found) {
  return callbacks.get_module_functions(module, &found.table, &found.size) != 0 &&
         found.table != nullptr;
}

}  // namespace

bool fill_nvtx(abi::GetExportTable* get_export_table) noexcept {
  if (get_export_table == nullptr) return false;
  const auto* callbacks =
      static_cast<const abi::CallbackTable*>(get_export_table(abi::kTableCallbacks));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(abi::CallbackTable) ||
      callbacks->get_module_functions == nullptr) {
    return false;
  }
  Places core;
  if (!places(*callbacks, abi::Module::kCore, core)) return false;
  core.fill<abi::fn::RangeStartEx>(abi::kRangeStartEx, start_ex);
  core.fill<abi::fn::RangeStartA>(abi::kRangeStartA, start_ascii);
  core.fill<abi::fn::RangeStartW>(abi::kRangeStartW, start_wide);
  core.fill<abi::fn::RangeEnd>(abi::kRangeEnd, range_end);
  core.fill<abi::fn::RangePushEx>(abi::kRangePushEx, push_ex);
  core.fill<abi::fn::RangePushA>(abi::kRangePushA, push_ascii);
  core.fill<abi::fn::RangePushW>(abi::kRangePushW, push_wide);
  core.fill<abi::fn::RangePop>(abi::kRangePop, pop);
  Places domains;
  if (places(*callbacks, abi::Module::kCore2, domains)) {
    domains.fill<abi::fn::DomainRangeStartEx>(abi::kDomainRangeStartEx, domain_start);
    domains.fill<abi::fn::DomainRangeEnd>(abi::kDomainRangeEnd, domain_end);
    domains.fill<abi::fn::DomainRangePushEx>(abi::kDomainRangePushEx, domain_push);
    domains.fill<abi::fn::DomainRangePop>(abi::kDomainRangePop, domain_pop);
    domains.fill<abi::fn::DomainRegisterStringA>(abi::kDomainRegisterStringA, register_ascii);
    domains.fill<abi::fn::DomainRegisterStringW>(abi::kDomainRegisterStringW, register_wide);
    domains.fill<abi::fn::DomainCreateA>(abi::kDomainCreateA, create_ascii);
    domains.fill<abi::fn::DomainCreateW>(abi::kDomainCreateW, create_wide);
  }
  return true;
}

}  // namespace jouleprof::inject

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <utility>

#include "abi/curl_abi.h"
#include "base/file.h"
#include "base/json/json.h"
#include "base/process/dynlib.h"
#include "base/text.h"
#include "meters/wall/wall_source.h"

namespace jouleprof::meters {
namespace {

namespace curl = abi::curl;
using nlohmann::json;

constexpr std::size_t kLargestAnswer = std::size_t{1} << 20;

class Web {
 public:
  static Result<std::unique_ptr<Web>> open(const WallSpec& spec) {
    std::unique_ptr<Web> web(new Web);
    auto library = DynLib::open("libcurl.so.4");
    if (!library) library = DynLib::open("libcurl-gnutls.so.4");
    if (!library) {
      return fail(Errc::kNotFound,
                  fmt::format("{} needs the library libcurl.so.4 (Debian: libcurl4, Fedora: "
                              "libcurl)",
                              spec.kind));
    }
    web->library_ = std::move(*library);
    curl::GlobalInit global_init = nullptr;
    curl::EasyInit easy_init = nullptr;
    const bool complete =
        web->bind(global_init, "curl_global_init") && web->bind(easy_init, "curl_easy_init") &&
        web->bind(web->set_, "curl_easy_setopt") && web->bind(web->perform_, "curl_easy_perform") &&
        web->bind(web->info_, "curl_easy_getinfo") &&
        web->bind(web->cleanup_, "curl_easy_cleanup") &&
        web->bind(web->error_text_, "curl_easy_strerror");
    if (!complete || global_init(curl::kGlobalDefault) != curl::kOk) {
      return fail(Errc::kUnsupported, "libcurl.so.4 lacks functions that jouleprof calls");
    }
    web->handle_ = easy_init();
    if (web->handle_ == nullptr) return fail(Errc::kUnavailable, "libcurl gives no handle");
    if (auto set = web->configure(spec); !set) return forward_error(set);
    return web;
  }
  Web(const Web&) = delete;
  Web& operator=(const Web&) = delete;
  ~Web() {
    if (handle_ != nullptr) cleanup_(handle_);
  }

  // Errors: timeout, unavailable; not_found and permission_denied as the server answers.
  Result<std::string> get(const std::string& url) {
    body_.clear();
    error_.fill('\0');
    set_(handle_, curl::kUrl, url.c_str());
    const int code = perform_(handle_);
    if (code != curl::kOk) {
      const std::string why = error_[0] != '\0' ? error_.data() : error_text_(code);
      return fail(code == curl::kOperationTimedOut ? Errc::kTimeout : Errc::kUnavailable,
                  fmt::format("{} does not answer: {}{}", url, why,
                              code == curl::kPeerFailedVerification
                                  ? "; trust its certificate, or that of its authority, by ca=FILE "
                                    "after the kind"
                                  : ""));
    }
    long status = 0;
    info_(handle_, curl::kResponseCode, &status);
    if (status >= 200 && status < 300) return body_;
    const bool denied = status == 401 || status == 403;
    return fail(denied          ? Errc::kPermissionDenied
                : status == 404 ? Errc::kNotFound
                                : Errc::kUnavailable,
                fmt::format("{} answers with status {}{}", url, status,
                            denied ? ": give user:password in a file (credentials=FILE) or in "
                                     "JOULEPROF_WALL_CREDENTIALS"
                                   : ""));
  }

 private:
  Web() = default;

  template <typename F>
  bool bind(F*& function, const char* name) {
    return library_.bind(function, name);
  }

  Result<void> configure(const WallSpec& spec) {
    const auto key = [&](const char* name) {
      const auto found = spec.keys.find(name);
      return found == spec.keys.end() ? std::string() : found->second;
    };
    set_(handle_, curl::kNoSignal, 1L);
    set_(handle_, curl::kFollowLocation, 0L);
    set_(handle_, curl::kErrorBuffer, error_.data());
    set_(handle_, curl::kWriteFunction, static_cast<curl::Write>(&Web::take));
    set_(handle_, curl::kWriteData, static_cast<void*>(this));
    set_(handle_, curl::kTimeoutMs,
         static_cast<long>(
             std::chrono::duration_cast<std::chrono::milliseconds>(kWallPatience).count()));
    if (const auto ca = key("ca"); !ca.empty()) set_(handle_, curl::kCaInfo, ca.c_str());
    if (key("check") == "no") {
      set_(handle_, curl::kVerifyPeer, 0L);
      set_(handle_, curl::kVerifyHost, 0L);
    }
    std::string credentials;
    if (const auto file = key("credentials"); !file.empty()) {
      auto text = read_attribute(file);
      if (!text) return forward_error(text);
      credentials = std::move(*text);
    } else if (const char* set = std::getenv("JOULEPROF_WALL_CREDENTIALS")) {
      credentials = set;
    }
    if (!credentials.empty()) {
      // Basic authentication shows the password to the network, unless that is encrypted.
      const bool encrypted = spec.address.starts_with("https://");
      set_(handle_, curl::kHttpAuth,
           encrypted ? curl::kAuthAnySafe | curl::kAuthBasic : curl::kAuthAnySafe);
      set_(handle_, curl::kUserPassword, credentials.c_str());
    }
    return {};
  }

  static std::size_t take(char* data, std::size_t size, std::size_t count, void* user) {
    auto& body = static_cast<Web*>(user)->body_;
    const std::size_t bytes = size * count;
    if (bytes > kLargestAnswer - std::min(body.size(), kLargestAnswer)) return 0;
    body.append(data, bytes);
    return bytes;
  }

  DynLib library_;
  curl::EasySetopt set_ = nullptr;
  curl::EasyPerform perform_ = nullptr;
  curl::EasyGetinfo info_ = nullptr;
  curl::EasyCleanup cleanup_ = nullptr;
  curl::EasyStrerror error_text_ = nullptr;
  curl::Handle handle_ = nullptr;
  std::string body_;
  std::array<char, curl::kErrorSize> error_{};
};

using Parse = std::function<Result<double>(std::string_view)>;

class WebMeter : public WallSource {
 public:
  WebMeter(std::unique_ptr<Web> web, std::string url, Parse parse)
      : web_(std::move(web)), url_(std::move(url)), parse_(std::move(parse)) {}

  Result<WallReading> read() override {
    const auto answer = web_->get(url_);
    if (!answer) return forward_error(answer);
    const auto watts = parse_(*answer);
    if (!watts) return fail(watts.error().code, url_ + ": " + watts.error().message);
    return WallReading{Power::watts(*watts), std::nullopt};
  }

 private:
  std::unique_ptr<Web> web_;
  std::string url_;
  Parse parse_;
};

// The value below these keys; an object with "Reading" stands for it, as in Redfish. Null: none.
const json* find(const json& from, std::initializer_list<const char*> keys) {
  const json* at = &from;
  for (const char* key : keys) {
    if (!at->is_object() || !at->contains(key)) return nullptr;
    at = &(*at)[key];
  }
  return at;
}

std::optional<double> number(const json* value, std::size_t channel = 0) {
  if (value == nullptr) return std::nullopt;
  if (value->is_array()) {
    return channel < value->size() ? number(&(*value)[channel]) : std::nullopt;
  }
  if (value->is_object() && value->contains("Reading")) return number(&(*value)["Reading"]);
  return value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

Result<double> plausible(std::optional<double> watts) {
  constexpr double kMost = 1e6;
  if (!watts) return fail(Errc::kCorrupt, "the answer has no power");
  if (!(*watts >= 0 && *watts <= kMost)) {
    return fail(Errc::kCorrupt, fmt::format("the answer is {} W, which is impossible", *watts));
  }
  return *watts;
}

Result<json> parse(std::string_view text) {
  auto document = json_value(text);
  if (document.is_discarded()) return fail(Errc::kCorrupt, "the answer is not JSON");
  return document;
}

std::string origin_of(const std::string& url) {
  const auto begin = url.find("://");
  return url.substr(0, url.find('/', begin == std::string::npos ? 0 : begin + 3));
}

// The first chassis that reports a power.
Result<std::string> find_redfish(Web& web, const std::string& base) {
  const auto list = web.get(base + "/redfish/v1/Chassis");
  if (!list) return forward_error(list);
  const auto chassis = parse(*list);
  if (!chassis) return forward_error(chassis);
  const json* members = find(*chassis, {"Members"});
  for (const auto& member : members != nullptr && members->is_array() ? *members : json::array()) {
    const json* id = find(member, {"@odata.id"});
    if (id == nullptr || !id->is_string()) continue;
    for (const char* part : {"/EnvironmentMetrics", "/Power"}) {
      const std::string url = base + id->get<std::string>() + part;
      const auto answer = web.get(url);
      if (answer && redfish_watts(*answer)) return url;
      if (!answer && answer.error().code == Errc::kPermissionDenied) return forward_error(answer);
    }
  }
  return fail(Errc::kUnsupported, base + ": no chassis reports its power by Redfish");
}

}  // namespace

Result<double> redfish_watts(std::string_view text) {
  const auto answer = parse(text);
  if (!answer) return forward_error(answer);
  for (const auto& keys : {"PowerWatts", "InputPowerWatts"}) {
    if (const auto watts = number(find(*answer, {keys}))) return plausible(watts);
  }
  if (const json* control = find(*answer, {"PowerControl"}); control && control->is_array()) {
    for (const auto& part : *control) {
      if (const auto watts = number(find(part, {"PowerConsumedWatts"}))) return plausible(watts);
    }
  }
  std::optional<double> sum;
  if (const json* supplies = find(*answer, {"PowerSupplies"}); supplies && supplies->is_array()) {
    for (const auto& supply : *supplies) {
      const auto watts = number(find(supply, {"PowerInputWatts"}));
      if (!watts) return plausible(std::nullopt);
      sum = sum.value_or(0) + *watts;
    }
  }
  return plausible(sum);
}

Result<double> shelly_watts(std::string_view text, int channel) {
  const auto answer = parse(text);
  if (!answer) return forward_error(answer);
  for (const auto& [component, field] : {std::pair{"switch", "apower"},
                                         {"pm1", "apower"},
                                         {"em1", "act_power"},
                                         {"em", "total_act_power"}}) {
    const std::string key = fmt::format("{}:{}", component, channel);
    if (const auto watts = number(find(*answer, {key.c_str(), field}))) return plausible(watts);
  }
  for (const char* key : {"meters", "emeters"}) {
    const json* meters = find(*answer, {key});
    if (meters == nullptr || !meters->is_array()) continue;
    if (static_cast<std::size_t>(channel) >= meters->size()) continue;
    const auto& meter = (*meters)[static_cast<std::size_t>(channel)];
    // The plug's own check of its meter; the power is then 0.
    if (const json* is_valid = find(meter, {"is_valid"}); is_valid && *is_valid == false) {
      return fail(Errc::kUnavailable, "the plug says that its power is not valid");
    }
    if (const auto watts = number(find(meter, {"power"}))) return plausible(watts);
  }
  return plausible(std::nullopt);
}

Result<double> tasmota_watts(std::string_view text, int channel) {
  const auto answer = parse(text);
  if (!answer) return forward_error(answer);
  const json* power = find(*answer, {"StatusSNS", "ENERGY", "Power"});
  if (power != nullptr && !power->is_array() && channel > 0) power = nullptr;
  return plausible(number(power, static_cast<std::size_t>(channel)));
}

Result<std::unique_ptr<WallSource>> open_web_meter(const WallSpec& spec) {
  auto web = Web::open(spec);
  if (!web) return forward_error(web);
  std::string url = spec.address;
  if (url.find("://") == std::string::npos) {
    url = (spec.kind == "redfish" ? "https://" : "http://") + url;
  }
  while (url.ends_with('/')) url.pop_back();
  const bool has_path = origin_of(url) != url;
  const auto found = spec.keys.find("channel");
  const int channel =
      found == spec.keys.end() ? 0 : static_cast<int>(parse_integer(found->second).value_or(0));
  Parse parse_answer = redfish_watts;
  if (spec.kind == "redfish") {
    if (!has_path) {
      auto resource = find_redfish(**web, url);
      if (!resource) return forward_error(resource);
      url = std::move(*resource);
    }
  } else if (spec.kind == "shelly") {
    parse_answer = [channel](std::string_view text) { return shelly_watts(text, channel); };
    if (!has_path) {
      const std::string host = url;
      url = host + "/rpc/Shelly.GetStatus";
      const auto answer = (*web)->get(url);
      if (!answer && answer.error().code == Errc::kNotFound) url = host + "/status";
    }
  } else {
    parse_answer = [channel](std::string_view text) { return tasmota_watts(text, channel); };
    if (!has_path) url += "/cm?cmnd=Status%208";
  }
  return std::make_unique<WebMeter>(std::move(*web), std::move(url), std::move(parse_answer));
}

}  // namespace jouleprof::meters

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>

#include "apps/serve/web_security.h"
#include "base/file.h"
#include "base/text.h"

namespace jouleprof::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestFile = 1 << 20;
constexpr std::array<std::pair<std::string_view, ClientAuth>, 5> kClientAuths{
    {{"NoClientCert", ClientAuth::kNone},
     {"RequestClientCert", ClientAuth::kRequest},
     {"RequireAnyClientCert", ClientAuth::kRequireAny},
     {"VerifyClientCertIfGiven", ClientAuth::kVerifyIfGiven},
     {"RequireAndVerifyClientCert", ClientAuth::kRequireAndVerify}}};
// What the toolkit allows its users to set.
constexpr std::array<std::string_view, 5> kHeaders{"Content-Security-Policy", "X-Frame-Options",
                                                   "X-Content-Type-Options", "X-XSS-Protection",
                                                   "Strict-Transport-Security"};

// Go's names, and OpenSSL's.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kCurves{
    {{"CurveP256", "P-256"}, {"CurveP384", "P-384"}, {"CurveP521", "P-521"}, {"X25519", "X25519"}}};
constexpr std::array<std::pair<std::string_view, double>, 6> kTimeUnits{
    {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};
constexpr double kLongestInterval = 3600e9;

// As Go writes a duration: 500ms, 1m30s, 0.
std::optional<Duration> parse_go_duration(std::string_view text) {
  if (text == "0") return Duration{};
  double sum = 0;
  while (!text.empty()) {
    const auto digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const auto number = parse_number(text.substr(0, digits));
    text.remove_prefix(digits);
    const auto end = std::min(text.find_first_of("0123456789."), text.size());
    const auto* const unit = std::ranges::find_if(
        kTimeUnits, [&](const auto& u) { return u.first == text.substr(0, end); });
    if (!number || unit == kTimeUnits.end()) return std::nullopt;
    sum += *number * unit->second;
    text.remove_prefix(end);
  }
  if (sum <= 0 || sum > kLongestInterval) return std::nullopt;
  return Duration{std::llround(sum)};
}

// The first error wins.
class Reader {
 public:
  explicit Reader(fs::path file) : file_(std::move(file)) {}

  Result<WebConfig> read(const YAML::Node& root) {
    WebConfig config;
    keys(root, "", [&](const std::string& key, const YAML::Node& value) {
      if (key == "tls_server_config") {
        config.tls = tls(value);
      } else if (key == "http_server_config") {
        http(value, config);
      } else if (key == "rate_limit") {
        config.rate_limit = rate_limit(value);
      } else if (key == "basic_auth_users") {
        keys(value, key, [&](const std::string& user, const YAML::Node& hash) {
          config.users[user] = bcrypt(user, text(hash, key + "." + user));
        });
      } else {
        unknown(key);
      }
    });
    if (error_) return tl::unexpected(*error_);
    return config;
  }

 private:
  using Visit = std::function<void(const std::string&, const YAML::Node&)>;

  void add(const std::string& key, const std::string& what) {
    if (error_) return;
    error_ = Error{Errc::kInvalidArgument, fmt::format("{}: '{}' {}", file_.string(), key, what)};
  }
  void unknown(const std::string& key) { add(key, "is unknown"); }

  void keys(const YAML::Node& node, const std::string& path, const Visit& visit) {
    if (node.IsNull()) return;
    if (!node.IsMap()) return add(path, "must be a mapping");
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return add(path, "has a key that is no text");
      visit(entry.first.Scalar(), entry.second);
    }
  }

  std::string text(const YAML::Node& node, const std::string& key) {
    if (!node.IsScalar()) {
      add(key, "must be a text");
      return {};
    }
    return node.Scalar();
  }

  std::vector<std::string> texts(const YAML::Node& node, const std::string& key) {
    std::vector<std::string> out;
    if (node.IsNull()) return out;
    if (!node.IsSequence()) {
      add(key, "must be a list");
      return out;
    }
    for (const auto& each : node) out.push_back(text(each, key));
    return out;
  }

  std::optional<RateLimit> rate_limit(const YAML::Node& node) {
    RateLimit limit;
    keys(node, "rate_limit", [&](const std::string& name, const YAML::Node& value) {
      const std::string key = "rate_limit." + name;
      const auto word = text(value, key);
      if (name == "interval") {
        const auto interval = parse_go_duration(word);
        if (!interval) return add(key, "must be a time up to 1h, such as 500ms");
        limit.interval = *interval;
      } else if (name == "burst") {
        const auto burst = parse_integer(word);
        if (!burst || *burst < 0 || *burst > 1'000'000) return add(key, "must be a whole number");
        limit.burst = static_cast<double>(*burst);
      } else {
        unknown(key);
      }
    });
    if (limit.interval == Duration{}) return std::nullopt;
    // The toolkit would refuse each request.
    if (limit.burst < 1) add("rate_limit.burst", "must be at least 1, where there is an interval");
    return limit;
  }

  std::string bcrypt(const std::string& user, std::string hash) {
    const bool is_hash = hash.size() == 60 && hash.starts_with("$2") && hash[3] == '$' &&
                         std::string_view("aby").find(hash[2]) != std::string_view::npos;
    if (!is_hash) {
      add("basic_auth_users." + user,
          "is no bcrypt hash: make one with `htpasswd -nBC 10 \"\" | tr -d ':'`");
    }
    return hash;
  }

  TlsConfig tls(const YAML::Node& node) {
    TlsConfig tls;
    const std::string path = "tls_server_config";
    const auto file = [&](const YAML::Node& value, const std::string& key) -> fs::path {
      const fs::path named = text(value, key);
      return named.empty() || named.is_absolute() ? named : file_.parent_path() / named;
    };
    keys(node, path, [&](const std::string& name, const YAML::Node& value) {
      const std::string key = path + "." + name;
      if (name == "cert_file") {
        tls.certificate = file(value, key);
      } else if (name == "key_file") {
        tls.key = file(value, key);
      } else if (name == "client_ca_file") {
        tls.client_authority = file(value, key);
      } else if (name == "client_auth_type") {
        const auto word = text(value, key);
        const auto* const found =
            std::ranges::find_if(kClientAuths, [&](const auto& c) { return c.first == word; });
        if (found == kClientAuths.end()) return add(key, "is none of the toolkit's types");
        tls.client_auth = found->second;
      } else if (name == "min_version" || name == "max_version") {
        const auto word = text(value, key);
        if (word != "TLS12" && word != "TLS13") return add(key, "must be TLS12 or TLS13");
        if (name == "min_version") {
          tls.allows_1_2 = word == "TLS12";
        } else {
          tls.allows_1_3 = word == "TLS13";
        }
      } else if (name == "prefer_server_cipher_suites") {
        (void)text(value, key);
      } else if (name == "cipher_suites") {
        tls.cipher_suites = texts(value, key);
      } else if (name == "curve_preferences") {
        for (const auto& word : texts(value, key)) {
          const auto* const found =
              std::ranges::find_if(kCurves, [&](const auto& c) { return c.first == word; });
          if (found == kCurves.end()) return add(key, fmt::format("has the unknown '{}'", word));
          tls.curves.emplace_back(found->second);
        }
      } else if (name == "client_allowed_sans" || name == "cert" || name == "key" ||
                 name == "client_ca") {
        add(key, "is not supported by jouleprof; remove it");
      } else {
        unknown(key);
      }
    });
    if (tls.certificate.empty()) add(path + ".cert_file", "is missing");
    if (tls.key.empty()) add(path + ".key_file", "is missing");
    if (!tls.allows_1_2 && !tls.allows_1_3) add(path + ".max_version", "is below min_version");
    const bool verifies = tls.client_auth == ClientAuth::kVerifyIfGiven ||
                          tls.client_auth == ClientAuth::kRequireAndVerify;
    if (verifies && tls.client_authority.empty()) add(path + ".client_ca_file", "is missing");
    return tls;
  }

  void http(const YAML::Node& node, WebConfig& config) {
    const std::string path = "http_server_config";
    keys(node, path, [&](const std::string& name, const YAML::Node& value) {
      if (name == "http2") {  // HTTP/1.1 is spoken either way
        (void)text(value, path + ".http2");
      } else if (name == "headers") {
        keys(value, path + ".headers", [&](const std::string& header, const YAML::Node& content) {
          const std::string key = path + ".headers." + header;
          if (std::ranges::find(kHeaders, header) == kHeaders.end()) {
            return add(key, "cannot be set");
          }
          const auto set = text(content, key);
          if (set.find_first_of("\r\n") != std::string::npos) return add(key, "has a line break");
          config.headers.emplace_back(header, set);
        });
      } else {
        unknown(path + "." + name);
      }
    });
  }

  const fs::path file_;
  std::optional<Error> error_;
};

}  // namespace

Result<WebConfig> read_web_config(const fs::path& path) {
  const auto content = read_file(path, kLongestFile);
  if (!content) return forward_error(content);
  try {
    return Reader(path).read(YAML::Load(*content));
  } catch (const YAML::Exception& e) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} is no YAML: {}", path.string(), one_line(e.what())));
  }
}

}  // namespace jouleprof::serve

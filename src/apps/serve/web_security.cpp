#include "apps/serve/web_security.h"

#include <crypt.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/say.h"
#include "base/text.h"

namespace jouleprof::serve {

tl::unexpected<Error> refused_pem(std::string_view what, const std::filesystem::path& file,
                                  const boost::system::error_code& err) {
  constexpr std::size_t kLargest = std::size_t{1} << 20;
  // OpenSSL has no words for what the system refuses.
  const auto read = read_file(file, kLargest);
  return fail(Errc::kInvalidArgument,
              fmt::format("cannot use the {} {}", what,
                          read ? fmt::format("{}: {}; it must be a file in PEM", file.string(),
                                             err.message())
                               : read.error().message));
}

namespace {

namespace fs = std::filesystem;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

constexpr std::size_t kLargestTable = std::size_t{16} << 20;  // some 100,000 connections

// OpenSSL's name of a suite that Go names; Go leaves the hash out of two of them.
std::string cipher_named(const std::string& name) {
  for (const char* end : {"", "_SHA256"}) {
    const std::string found = OPENSSL_cipher_name((name + end).c_str());
    if (found != "(NONE)") return found;
  }
  return {};
}

Result<void> set_ciphers(SSL_CTX* context, const TlsConfig& config) {
  std::string suites;  // those of TLS 1.3 cannot be chosen
  for (const auto& name : config.cipher_suites) {
    const auto found = cipher_named(name);
    if (found.empty()) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("'tls_server_config.cipher_suites' has the unknown '{}'", name));
    }
    if (!found.starts_with("TLS_")) suites += (suites.empty() ? "" : ":") + found;
  }
  if (!config.cipher_suites.empty() && suites.empty()) {
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  }
  if (!suites.empty()) {
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
    if (SSL_CTX_set_cipher_list(context, suites.c_str()) != 1) {
      return fail(Errc::kInvalidArgument,
                  "'tls_server_config.cipher_suites' has none that this OpenSSL uses");
    }
  }
  const auto curves = fmt::format("{}", fmt::join(config.curves, ":"));
  if (!curves.empty() && SSL_CTX_set1_groups_list(context, curves.c_str()) != 1) {
    return fail(Errc::kInvalidArgument,
                "'tls_server_config.curve_preferences' has one that this OpenSSL does not know");
  }
  return {};
}

Result<std::shared_ptr<ssl::context>> make_context(const TlsConfig& config) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  auto* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, config.allows_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(native, config.allows_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  if (auto set = set_ciphers(native, config); !set) return forward_error(set);
  error_code err;
  context->use_certificate_chain_file(config.certificate.string(), err);
  if (err) return refused_pem("certificate", config.certificate, err);
  context->use_private_key_file(config.key.string(), ssl::context::pem, err);
  if (err) return refused_pem("key", config.key, err);
  if (SSL_CTX_check_private_key(native) != 1) {
    return fail(Errc::kInvalidArgument,
                fmt::format("the key {} does not belong to {}", config.key.string(),
                            config.certificate.string()));
  }
  if (!config.client_authority.empty()) {
    context->load_verify_file(config.client_authority.string(), err);
    if (err) return refused_pem("client authority", config.client_authority, err);
    SSL_CTX_set_client_CA_list(native, SSL_load_client_CA_file(config.client_authority.c_str()));
  }
  int mode = SSL_VERIFY_NONE;
  if (config.client_auth != ClientAuth::kNone) mode = SSL_VERIFY_PEER;
  if (config.client_auth == ClientAuth::kRequireAny ||
      config.client_auth == ClientAuth::kRequireAndVerify) {
    mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  }
  const bool any =
      config.client_auth == ClientAuth::kRequest || config.client_auth == ClientAuth::kRequireAny;
  using Verify = int (*)(int, X509_STORE_CTX*);
  const Verify accept_any = [](int, X509_STORE_CTX*) { return 1; };
  SSL_CTX_set_verify(native, mode, any ? accept_any : nullptr);
  static constexpr unsigned char kSession[] = "jouleprof";
  SSL_CTX_set_session_id_context(native, kSession, sizeof kSession - 1);
  return context;
}

}  // namespace

Result<std::unique_ptr<WebSecurity>> WebSecurity::open(const fs::path& path) {
  std::unique_ptr<WebSecurity> made(new WebSecurity(path));
  if (auto loaded = made->load(); !loaded) return forward_error(loaded);
  return made;
}

bool WebSecurity::identifies_callers() const {
  return !config_.users.empty() ||
         (config_.tls && config_.tls->client_auth == ClientAuth::kRequireAndVerify);
}

bool WebSecurity::admits(HostTime now) {
  if (!config_.rate_limit) return true;
  const auto& limit = *config_.rate_limit;
  bucket_ += seconds(now - std::exchange(filled_, now)) / seconds(limit.interval);
  bucket_ = std::min(bucket_, limit.burst);
  if (bucket_ < 1) return false;
  bucket_ -= 1;
  return true;
}

std::optional<std::uint32_t> user_of_connection(std::string_view client, std::string_view server,
                                                const fs::path& table) {
  const auto text = read_file(table, kLargestTable);
  if (!text) return std::nullopt;
  for (const auto line : split(*text, '\n')) {
    // sl local_address rem_address st tx:rx tr:tm retrnsmt uid ... (proc_pid_net(5))
    const auto fields = split_blanks(line);
    if (fields.size() < 8 || fields[1] != client || fields[2] != server) continue;
    const auto uid = parse_integer(fields[7]);
    if (uid && *uid >= 0 && *uid <= 0xffffffff) return static_cast<std::uint32_t>(*uid);
  }
  return std::nullopt;
}

WebSecurity::Print WebSecurity::print() const {
  Print out;
  const auto add = [&out](const fs::path& file) {
    std::error_code ignored;
    out.emplace_back(fs::last_write_time(file, ignored), fs::file_size(file, ignored));
  };
  add(path_);
  if (config_.tls) {
    add(config_.tls->certificate);
    add(config_.tls->key);
    if (!config_.tls->client_authority.empty()) add(config_.tls->client_authority);
  }
  return out;
}

Result<void> WebSecurity::load() {
  auto config = read_web_config(path_);
  if (!config) return forward_error(config);
  std::shared_ptr<ssl::context> tls;
  if (config->tls) {
    auto context = make_context(*config->tls);
    if (!context) return forward_error(context);
    tls = std::move(*context);
  }
  config_ = std::move(*config);
  tls_ = std::move(tls);
  auth_ = std::make_shared<BasicAuth>(config_.users);
  print_ = print();
  if (config_.rate_limit) bucket_ = config_.rate_limit->burst;
  return {};
}

void WebSecurity::refresh(HostTime now) {
  if (now < next_) return;
  next_ = now + std::chrono::seconds{1};
  const auto current = print();
  if (current == print_) return;
  print_ = current;
  if (const auto loaded = load(); !loaded) {
    say("jouleprof: {}; the settings before it stay\n", loaded.error().message);
  }
}

namespace {

constexpr std::size_t kMostRemembered = 100;
constexpr std::size_t kLongest = 1024;
// Of a password that no one has: what a user who does not exist is compared with.
constexpr const char* kNoUser = "$2b$10$Hj8sA5mVtqk1lQ0r7uXnSeQ3m9w1YkZ4bC6dE8fG0hI2jK4lM6nOa";

struct Credentials {
  std::string user;
  std::string password;
};

std::optional<Credentials> parse(std::string_view header) {
  constexpr std::string_view kScheme = "basic ";
  if (header.size() < kScheme.size() || header.size() > kLongest) return std::nullopt;
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    const char c = header[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) != kScheme[i]) return std::nullopt;
  }
  header.remove_prefix(kScheme.size());
  while (header.starts_with(' ')) header.remove_prefix(1);
  if (header.empty() || header.size() % 4 != 0) return std::nullopt;
  std::string text(header.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(header.data()),
                                   static_cast<int>(header.size()));
  if (size < 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(size));
  for (int i = 0; i < 2 && header.ends_with('='); ++i) {
    header.remove_suffix(1);
    text.pop_back();
  }
  const auto colon = text.find(':');
  if (colon == std::string::npos || text.find('\0') != std::string::npos) return std::nullopt;
  return Credentials{text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace

BasicAuth::BasicAuth(std::map<std::string, std::string> users) : users_(std::move(users)) {
  if (RAND_bytes(salt_.data(), static_cast<int>(salt_.size())) != 1) std::abort();
}

BasicAuth::Digest BasicAuth::digest(std::string_view header) const {
  std::string text(reinterpret_cast<const char*>(salt_.data()), salt_.size());
  text += header;
  Digest out;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
  return out;
}

BasicAuth::Verdict BasicAuth::verdict(std::string_view header) const {
  if (users_.empty()) return Verdict::kAllowed;
  if (!parse(header)) return Verdict::kDenied;
  // The digests are salted: how long a search takes says nothing of what was remembered.
  return remembered_.contains(digest(header)) ? Verdict::kAllowed : Verdict::kUnknown;
}

std::string BasicAuth::user_in(std::string_view header) {
  const auto given = parse(header);
  return given ? given->user : std::string();
}

bool BasicAuth::verify(std::string_view header) const {
  const auto given = parse(header);
  if (!given) return false;
  const auto user = users_.find(given->user);
  const bool exists = user != users_.end();
  const char* const hash = exists ? user->second.c_str() : kNoUser;
  const auto work = std::make_unique<crypt_data>();
  // Not crypt_r: AddressSanitizer replaces it by one that a statically linked library does not
  // have.
  const char* const computed =
      crypt_rn(given->password.c_str(), hash, work.get(), static_cast<int>(sizeof(crypt_data)));
  if (computed == nullptr) return false;
  const std::string_view result = computed;
  const std::string_view expected = hash;
  return result.size() == expected.size() &&
         CRYPTO_memcmp(result.data(), expected.data(), expected.size()) == 0 && exists;
}

void BasicAuth::remember(std::string_view header) {
  if (remembered_.size() >= kMostRemembered) remembered_.clear();
  remembered_.insert(digest(header));
}

}  // namespace jouleprof::serve

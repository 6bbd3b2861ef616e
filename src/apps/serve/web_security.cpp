#include "apps/serve/web_security.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "base/say.h"

namespace jouleprof::serve {
namespace {

namespace fs = std::filesystem;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

Result<std::shared_ptr<ssl::context>> make_context(const TlsConfig& config) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  auto* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, config.allows_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(native, config.allows_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  const auto refused = [](const char* what, const fs::path& file, const error_code& err) {
    return fail(Errc::kInvalidArgument,
                fmt::format("cannot use the {} {}: {}", what, file.string(), err.message()));
  };
  error_code err;
  context->use_certificate_chain_file(config.certificate.string(), err);
  if (err) return refused("certificate", config.certificate, err);
  context->use_private_key_file(config.key.string(), ssl::context::pem, err);
  if (err) return refused("key", config.key, err);
  if (SSL_CTX_check_private_key(native) != 1) {
    return fail(Errc::kInvalidArgument,
                fmt::format("the key {} does not belong to {}", config.key.string(),
                            config.certificate.string()));
  }
  if (!config.client_authority.empty()) {
    context->load_verify_file(config.client_authority.string(), err);
    if (err) return refused("client authority", config.client_authority, err);
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

}  // namespace jouleprof::serve

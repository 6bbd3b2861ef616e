#include "apps/serve/basic_auth.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

namespace jouleprof::serve {
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

BasicAuth::Verdict BasicAuth::look(std::string_view header) const {
  if (users_.empty()) return Verdict::kAllowed;
  if (!parse(header)) return Verdict::kDenied;
  // The digests are salted: how long a search takes says nothing of what was remembered.
  return remembered_.contains(digest(header)) ? Verdict::kAllowed : Verdict::kUnknown;
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

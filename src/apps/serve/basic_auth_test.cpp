#include <crypt.h>
#include <gtest/gtest.h>

#include <memory>

#include "apps/serve/web_security.h"

namespace jouleprof::serve {
namespace {

using Verdict = BasicAuth::Verdict;

std::string hash_of(const char* password) {
  const auto work = std::make_unique<crypt_data>();
  return crypt_rn(password, "$2y$04$abcdefghijklmnopqrstuu", work.get(), sizeof(crypt_data));
}

constexpr const char* kAnn = "Basic YW5uOnNlY3JldA==";    // ann:secret
constexpr const char* kOther = "Basic YW5uOnNlY3JldDE=";  // ann:secret1
constexpr const char* kBob = "Basic Ym9iOnNlY3JldA==";    // bob:secret

TEST(BasicAuth, ChecksNameAndPassword) {
  const BasicAuth auth({{"ann", hash_of("secret")}});
  EXPECT_TRUE(auth.verify(kAnn));
  EXPECT_TRUE(auth.verify("bAsIC  YW5uOnNlY3JldA=="));
  EXPECT_FALSE(auth.verify(kOther));
  EXPECT_FALSE(auth.verify(kBob));
}

TEST(BasicAuth, RemembersWhatWasCorrect) {
  BasicAuth auth({{"ann", hash_of("secret")}});
  EXPECT_EQ(auth.look(kAnn), Verdict::kUnknown);
  auth.remember(kAnn);
  EXPECT_EQ(auth.look(kAnn), Verdict::kAllowed);
  EXPECT_EQ(auth.look(kOther), Verdict::kUnknown);
}

TEST(BasicAuth, DeniesWhatIsNoCredential) {
  const BasicAuth auth({{"ann", hash_of("secret")}});
  for (const char* header :
       {"", "Basic", "Basic ", "Bearer YW5uOnNlY3JldA==", "Basic YW5uOnNlY3JldA",
        "Basic ====", "Basic !!!!", "Basic YW5u", "Basic YW5uOnMAYQ=="}) {
    EXPECT_EQ(auth.look(header), Verdict::kDenied) << header;
    EXPECT_FALSE(auth.verify(header)) << header;
  }
  EXPECT_EQ(auth.look("Basic " + std::string(4000, 'A')), Verdict::kDenied);
}

TEST(BasicAuth, WithoutUsersNothingIsAsked) {
  EXPECT_EQ(BasicAuth({}).look(""), Verdict::kAllowed);
}

}  // namespace
}  // namespace jouleprof::serve

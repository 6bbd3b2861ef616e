#include "model/domain.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace jouleprof::model {
namespace {

Domain domain(unsigned id, DomainKind kind, std::optional<unsigned> parent = std::nullopt) {
  Domain out;
  out.id = DomainId{id};
  out.kind = kind;
  if (parent) out.parent = DomainId{*parent};
  return out;
}

// Of a package within a platform, and its cores.
TEST(Domain, IsAPartOfOneThatTotalsHave) {
  const std::vector<Domain> all{domain(0, DomainKind::kPlatform), domain(1, DomainKind::kCpu, 0),
                                domain(2, DomainKind::kCpuCores, 1), domain(3, DomainKind::kGpu)};
  EXPECT_TRUE(contains_others(all[0].kind));
  EXPECT_FALSE(is_part(all[0], all));
  EXPECT_FALSE(contains_others(all[1].kind));
  EXPECT_FALSE(is_part(all[1], all));
  EXPECT_TRUE(is_part(all[2], all));
  EXPECT_FALSE(is_part(all[3], all));
}

TEST(Domain, OfAParentThatIsNotThereIsAPart) {
  EXPECT_TRUE(is_part(domain(2, DomainKind::kCpuCores, 1), std::vector<Domain>{}));
}

}  // namespace
}  // namespace jouleprof::model

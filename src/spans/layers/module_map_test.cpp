#include "spans/layers/module_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace jouleprof::layers {
namespace {

// Far apart, as if by chance, so that many share a place in the table.
const void* at(std::size_t i) {
  std::mt19937_64 random(i);
  return reinterpret_cast<const void*>(((random() >> 20) | 1) << 4);
}

TEST(ModuleMap, FindsWhatWasPut) {
  ModuleMap map;
  EXPECT_EQ(map.find(at(1)), nullptr);
  map.put({at(1), 7, false});
  ASSERT_NE(map.find(at(1)), nullptr);
  EXPECT_EQ(map.find(at(1))->layer, 7u);
  map.put({at(1), 8, true});
  EXPECT_EQ(map.find(at(1))->layer, 8u);
  EXPECT_EQ(map.size(), 1u);
}

TEST(ModuleMap, AnAddressThatIsUsedAgainIsNotTheDeadModule) {
  ModuleMap map;
  map.put({at(1), 7, false});
  map.erase(at(1));
  EXPECT_EQ(map.find(at(1)), nullptr);
  map.erase(at(1));  // twice does no harm
  EXPECT_EQ(map.size(), 0u);
}

TEST(ModuleMap, AgreesWithAMapUnderAnyOrder) {
  ModuleMap map;
  std::map<const void*, std::uint32_t> truth;
  std::mt19937 random(1);
  for (std::uint32_t step = 0; step < 200'000; ++step) {
    const void* module = at(random() % 3000);
    if (random() % 2 == 0) {
      map.put({module, step, false});
      truth[module] = step;
    } else {
      map.erase(module);
      truth.erase(module);
    }
  }
  EXPECT_EQ(map.size(), truth.size());
  for (std::size_t i = 0; i < 3000; ++i) {
    const auto known = truth.find(at(i));
    const ModuleEntry* found = map.find(at(i));
    ASSERT_EQ(found != nullptr, known != truth.end());
    if (found != nullptr) {
      EXPECT_EQ(found->layer, known->second);
    }
  }
}

}  // namespace
}  // namespace jouleprof::layers

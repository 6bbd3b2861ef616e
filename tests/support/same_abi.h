// Compares declarations of a C interface with the vendor's at compile time.
#pragma once

#include <cstddef>
#include <type_traits>

namespace jouleprof::abi {

// Same offset, same size.
#define SAME_MEMBER(ours, our_member, theirs, their_member)                     \
  static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) && \
                sizeof(ours::our_member) == sizeof(theirs::their_member))
#define SAME_SIZE(ours, theirs) \
  static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs))
#define SAME_VALUE(ours, theirs) \
  static_assert(static_cast<unsigned long long>(ours) == static_cast<unsigned long long>(theirs))

template <typename T>
inline constexpr std::size_t kSizeOf = sizeof(T);
template <>
inline constexpr std::size_t kSizeOf<void> = 0;

// Two types that are passed the same way.
template <typename A, typename B>
struct SameParameter
    : std::bool_constant<kSizeOf<A> == kSizeOf<B> &&
                         std::is_floating_point_v<A> == std::is_floating_point_v<B> &&
                         std::is_pointer_v<A> == std::is_pointer_v<B>> {};

template <typename Ours, typename Theirs>
struct SameFunction : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
  requires(sizeof...(A) == sizeof...(B))
struct SameFunction<R(A...), S(B...)>
    : std::bool_constant<SameParameter<R, S>::value && (SameParameter<A, B>::value && ...)> {};

}  // namespace jouleprof::abi

// The part of libcurl's C interface (libcurl.so.4) that is called. Its numbers never change.
// https://curl.se/libcurl/c/
#pragma once

#include <cstddef>

namespace jouleprof::abi::curl {

using Handle = void*;
using Write = std::size_t (*)(char* data, std::size_t size, std::size_t count, void* user);

constexpr int kOk = 0;
constexpr int kOperationTimedOut = 28;
constexpr int kPeerFailedVerification = 60;
constexpr long kGlobalDefault = 3;

enum Option : int {
  kWriteData = 10001,
  kUrl = 10002,
  kUserPassword = 10005,
  kErrorBuffer = 10010,
  kCaInfo = 10065,
  kWriteFunction = 20011,
  kFollowLocation = 52,
  kVerifyPeer = 64,
  kVerifyHost = 81,
  kNoSignal = 99,
  kHttpAuth = 107,
  kTimeoutMs = 155,
};
constexpr long kAuthAnySafe = ~16L & ~1L;  // any but Basic; added where the connection is encrypted
constexpr long kAuthBasic = 1;
constexpr int kResponseCode = 0x200002;
constexpr std::size_t kErrorSize = 256;

using GlobalInit = int (*)(long flags);
using EasyInit = Handle (*)();
using EasySetopt = int (*)(Handle, int option, ...);
using EasyPerform = int (*)(Handle);
using EasyGetinfo = int (*)(Handle, int info, ...);
using EasyCleanup = void (*)(Handle);
using EasyStrerror = const char* (*)(int code);

}  // namespace jouleprof::abi::curl

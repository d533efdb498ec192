// SHA-256 (FIPS 180-4), by OpenSSL.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace warpsmith {

// Incremental digest. Fields are framed by their length, so that ("ab","c") and ("a","bc") differ.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& update(std::string_view bytes);  // raw bytes, unframed
  Sha256& field(std::string_view bytes);   // 8-byte little-endian length, then the bytes
  std::string hex();                       // 64 lower-case hex digits; ends the digest

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);
std::string sha256_file_hex(const std::filesystem::path& path);  // throws Error

}  // namespace warpsmith

#include "warpsmith/base/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <memory>

#include "warpsmith/base/error.h"

namespace warpsmith {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (state_->context == nullptr || EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1)
    throw Error("SHA-256 is not available in this OpenSSL");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::update(std::string_view bytes) {
  EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
  return *this;
}

Sha256& Sha256::field(std::string_view bytes) {
  std::array<char, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<char>((static_cast<std::uint64_t>(bytes.size()) >> (8 * i)) & 0xff);
  update({length.data(), length.size()});
  return update(bytes);
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_DigestFinal_ex(state_->context, digest.data(), &size);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * size);
  for (unsigned int i = 0; i < size; ++i) {
    out += kDigits[digest[i] >> 4];
    out += kDigits[digest[i] & 15];
  }
  return out;
}

std::string sha256_hex(std::string_view bytes) { return Sha256().update(bytes).hex(); }

std::string sha256_file_hex(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error("cannot read " + path.string());
  constexpr std::streamsize kBuffer = 1 << 18;
  Sha256 digest;
  // Not a vector: clearing it would cost more than most files take to read.
  const auto buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
  while (in) {
    in.read(buffer.get(), kBuffer);
    digest.update({buffer.get(), static_cast<std::size_t>(in.gcount())});
  }
  return digest.hex();
}

}  // namespace warpsmith

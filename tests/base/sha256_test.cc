#include "warpsmith/base/sha256.h"

#include <gtest/gtest.h>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"

namespace warpsmith {
namespace {

// FIPS 180-4 examples.
TEST(Sha256, KnownVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, InPiecesAsInOne) {
  EXPECT_EQ(Sha256().update("a").update("").update("bc").hex(), sha256_hex("abc"));
}

TEST(Sha256, FieldsAreFramed) {
  EXPECT_EQ(Sha256().field("ab").field("c").hex(),
            "43ee655579de01ca739b3f95c1c2d3f46d353b2c0df818064ea594506cdb2617");
  EXPECT_NE(Sha256().field("ab").field("c").hex(), Sha256().field("a").field("bc").hex());
  EXPECT_NE(Sha256().field("").hex(), Sha256().hex());
}

TEST(Sha256, OfAFile) {
  const Scratch scratch;
  write_file_atomic(scratch / "f", std::string(3'000'000, 'q'));
  EXPECT_EQ(sha256_file_hex(scratch / "f"), sha256_hex(std::string(3'000'000, 'q')));
  write_file_atomic(scratch / "empty", "");
  EXPECT_EQ(sha256_file_hex(scratch / "empty"), sha256_hex(""));
  EXPECT_THROW(sha256_file_hex(scratch / "none"), Error);
}

}  // namespace
}  // namespace warpsmith

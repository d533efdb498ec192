// What the twin, NVRTC and nvcc are given is cleaned text, and what is looked at are its tokens: none of them
// may read it in another way.
#include "common/tokens.h"

#include <gtest/gtest.h>

#include <chrono>

#include "common/compile_unit.h"

namespace warpsmith::toolchain {
namespace {

std::string read(const std::string& source) {
  CleanSource clean;
  try {
    read_tokens(source, &clean);
  } catch (const SourceProblem& p) {
    return place_of(p);
  }
  std::string out;
  for (const Token& t : clean.tokens) out += (out.empty() ? "" : " ") + std::string(t.text);
  return out;
}

TEST(Tokens, NumbersAndCharacters) {
  EXPECT_EQ(read("1'000 0xF'fu 1e+5 0x1p-3f .5 1.e3 'a' u8'a' L'b' a'1' \"'\""),
            "1'000 0xF'fu 1e+5 0x1p-3f .5 1.e3 'a' u8 'a' L 'b' a '1' \"'\"");
  EXPECT_EQ(read("f'1' /* ' */ g"), "f '1' g");
  EXPECT_EQ(read("u8'a' /* ' */ x /* ' */"), "u8 'a' x");
  EXPECT_EQ(read("1\\\n2 'a\\\nb'"), "12 'ab'");
}

// Each of these is read in two ways: an apostrophe begins text for one reader, and not for the other.
TEST(Tokens, WhatCanBeReadInTwoWaysIsRefused) {
  constexpr const char* kNumber = "kernel.cu:1:5: error: a number goes on with what is no part of it\n";
  EXPECT_EQ(read("EAT(0' ') asm(\"nop\"); EAT(' '\n);"), kNumber);
  EXPECT_EQ(read("EAT(0''1) asm(\"nop\"); EAT(''\n);"), kNumber);
  EXPECT_EQ(read("EAT(0'''1) asm(\"nop\"); EAT(')"), kNumber);
  EXPECT_EQ(read("EAT(0$'a') asm(\"nop\"); EAT(' ')"), kNumber);
  EXPECT_EQ(read("EAT(0\xC3\xA9'a ) asm(\"nop\"); EAT(')"), kNumber);
  EXPECT_EQ(read("#if 0\n#define A 0' '\n#endif"),
            "kernel.cu:2:11: error: a number goes on with what is no part of it\n");
  EXPECT_EQ(read("a /\\\n* asm(\"nop\") *\\\n/"), "kernel.cu:1:3: error: a comment where none can be read\n");
}

TEST(Tokens, AByteOrderMarkIsPassedOver) {
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "a"),
            "a");
}

TEST(Tokens, NestingIsBounded) {
  const auto nested = [](std::size_t n, const char* open, const char* close) {
    std::string text = "int a = ";
    for (std::size_t i = 0; i < n; ++i) text += open;
    for (std::size_t i = 0; i < n; ++i) text += close;
    return text + ";";
  };
  constexpr const char* kTooDeep = "kernel.cu:1:265: error: brackets are nested more than 256 deep\n";
  for (const auto& [open, close] : {std::pair("(", ")"), std::pair("[", "]"), std::pair("{", "}")}) {
    EXPECT_EQ(read(nested(256, open, close)).find("error"), std::string::npos);
    EXPECT_EQ(read(nested(257, open, close)), kTooDeep);
    EXPECT_EQ(read(nested(400'000, open, close)), kTooDeep);
  }
  EXPECT_EQ(read("#define A " + nested(257, "(", ")")),
            "kernel.cu:1:275: error: brackets are nested more than 256 deep\n");
  EXPECT_EQ(read(nested(300, "a<", " >")),
            "kernel.cu:1:522: error: brackets are nested more than 256 deep\n");
  // Comparisons: no list of arguments goes on behind these.
  std::string compared = "int a = 0";
  for (int i = 0; i < 1000; ++i) compared += " + (b < c) && b < d || e < f";
  EXPECT_EQ(read(compared + ";").find("error"), std::string::npos);
}

TEST(Tokens, SizeIsBounded) {
  EXPECT_EQ(read(std::string(1 << 20, ' ')), "");
  EXPECT_EQ(read(std::string((1 << 20) + 1, ' ')), "kernel.cu:1:1: error: the source is larger than 1 MiB\n");
}

TEST(Options, AreDirectives) {
  Candidate candidate;
  candidate.options = {"-DTILE=32", "-DFAST", "-DEMPTY=", "-DA=b=c", "--use_fast_math"};
  const CandidateOptions options = read_options(candidate);
  EXPECT_EQ(define_lines(options.defines),
            "#define TILE 32\n#define FAST 1\n#define EMPTY \n#define A b=c\n");
  for (const char* bad : {"-D", "-D=3", "-D3=4", "-Dwstw_x", "-DX=__has_include", "-DX=_CCCL_HAS_INCLUDE",
                          "-DX=(1)", "-DX=1;", "-DX=WSTW_EXIT"}) {
    candidate.options = {bad};
    EXPECT_THROW(read_options(candidate), SourceProblem) << bad;
  }
}

}  // namespace
}  // namespace warpsmith::toolchain

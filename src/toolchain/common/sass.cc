#include "sass.h"

#include <algorithm>
#include <array>

#include "warpsmith/base/sha256.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::size_t kInstructionBytes = 16;
// The first 9 bits are the operation, the next three the kinds of its operands, four more the predicate that
// guards it.
constexpr std::uint64_t kOperation = 0x1ff;

struct Instruction {
  std::uint64_t first, second;
  std::uint64_t operation() const { return first & kOperation; }
};

constexpr std::uint64_t kNop = 0x118;

// Bits `low` … `high` of 64.
constexpr std::uint64_t bits(std::uint64_t word, int low, int high) {
  return (word >> low) & ((std::uint64_t{1} << (high - low + 1)) - 1);
}

// Registers stand in bits 16 to 39 and 64 to 71, constants and addresses in 32 to 63, predicates in 81 to 90,
// what the scheduler is told from 105 on. Of the rest are modifiers; of two registers bits 62 and 63 are the
// second one's sign.
std::uint64_t without_names(const Instruction& i) {
  constexpr std::uint64_t kAlways = 7, kRegisters = 1;
  const std::uint64_t guarded = bits(i.first, 12, 15) != kAlways;
  const std::uint64_t sign = bits(i.first, 9, 11) == kRegisters ? bits(i.first, 62, 63) : 0;
  return bits(i.first, 0, 11) | guarded << 12 | sign << 13 | bits(i.second, 8, 16) << 15 |
         bits(i.second, 27, 40) << 24;
}

// Empty: of none.
std::string digest_of(std::vector<std::uint64_t> instructions) {
  if (instructions.empty()) return "";
  std::sort(instructions.begin(), instructions.end());
  return sha256_hex(
      {reinterpret_cast<const char*>(instructions.data()), instructions.size() * sizeof(instructions[0])});
}

}  // namespace

bool is_matrix_instruction(std::uint64_t first_half) {
  constexpr std::array<std::uint64_t, 11> kOperations = {0x037,   // IMMA
                                                         0x03c,   // HMMA
                                                         0x03d,   // BMMA
                                                         0x03f,   // DMMA
                                                         0x07a,   // QMMA
                                                         0x07f,   // OMMA
                                                         0x1ea,   // UTCHMMA, UTCIMMA, UTCQMMA
                                                         0x1f0,   // HGMMA
                                                         0x1f1,   // IGMMA
                                                         0x1f2,   // BGMMA
                                                         0x1f3};  // QGMMA
  return std::find(kOperations.begin(), kOperations.end(), first_half & kOperation) != kOperations.end();
}

bool has_matrix_instruction(std::string_view code) {
  std::uint64_t first = 0;
  for (std::size_t at = 0; read_at(code, at, &first); at += kInstructionBytes)
    if (is_matrix_instruction(first)) return true;
  return false;
}

std::string digest_of_parts(std::vector<std::string> parts) {
  std::erase(parts, "");
  if (parts.empty()) return "";
  std::sort(parts.begin(), parts.end());
  Sha256 all;
  for (const std::string& one : parts) all.field(one);
  return all.hex();
}

std::vector<std::string> sass_structures(const ElfContent& cubin) {
  std::vector<std::string> structures;
  for (const ElfSection& section : cubin.sections) {
    if (!section.name.starts_with(".text.")) continue;
    std::vector<std::uint64_t> instructions;
    Instruction one;
    for (std::size_t at = 0; read_at(section.bytes, at, &one); at += kInstructionBytes)
      if (one.operation() != kNop) instructions.push_back(without_names(one));
    structures.push_back(digest_of(std::move(instructions)));
  }
  return structures;
}

}  // namespace warpsmith::toolchain

// Changes to a candidate's source, gathered token by token and made all at once. Lines stay where they are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../common/tokens.h"

namespace warpsmith::toolchain {

// What was put into a line, to find a column of the candidate again.
struct Insertion {
  int column;  // in the changed line, from 1
  int added;   // characters; negative where some were taken away
};

class SourceEdits {
 public:
  // Keeps a reference.
  explicit SourceEdits(const CleanSource& source) : source_(source) {}

  // Places are tokens. At one place, what belongs to the token before comes first, then what goes before the
  // token, then what replaces it; within these, in the order of the calls.
  void insert_before(std::size_t i, std::string what);
  void insert_after(std::size_t i, std::string what);
  // In the middle of a directive: behind what ends at this offset of the text.
  void insert_at_offset(std::size_t offset, std::string what);
  // Blanks tokens out, newlines kept.
  void remove(std::size_t first, std::size_t last, const std::string& instead = "");
  void replace(std::size_t i, std::string what);

  struct Result {
    std::string text;
    std::map<int, std::vector<Insertion>> insertions;  // by line
  };
  // A change inside something that was replaced is left out.
  Result apply();

 private:
  enum Order { kAfter, kBefore, kInstead };
  struct Edit {
    std::size_t offset = 0, removed = 0;
    std::string text;
    Order order = kBefore;
  };

  const CleanSource& source_;
  std::vector<Edit> edits_;
};

}  // namespace warpsmith::toolchain

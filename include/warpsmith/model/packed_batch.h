// Sequences of a batch, packed: all tokens in one list, cut into segments, so nothing is padded. A segment
// attends to itself causally, and to all of one earlier segment if it names one as its prefix: a prompt
// shared by several completions is computed once, and its gradient is the sum over them.
#pragma once

#include <cstdint>
#include <vector>

#include "warpsmith/model/settings.h"

namespace warpsmith::model {

// Tokens [begin, begin + length) of a batch.
struct Segment {
  std::int64_t begin = 0, length = 0;
  std::int64_t prefix = -1;  // an earlier segment of the batch, without a prefix of its own; -1: none
};

struct PackedBatch {
  std::vector<Token> tokens;
  std::vector<Segment> segments;
  // What is asked of it: the log-probability of targets[i] after the token in row rows[i].
  std::vector<std::int64_t> rows;
  std::vector<Token> targets;
};

// A segment for `prompt` and, sharing it, one for each completion; asks for every token of every completion.
void append_group(PackedBatch& batch, const std::vector<Token>& prompt,
                  const std::vector<std::vector<Token>>& completions);
// The same question, without sharing: prompt and completion in one segment.
void append_sequence(PackedBatch& batch, const std::vector<Token>& prompt,
                     const std::vector<Token>& completion);

}  // namespace warpsmith::model

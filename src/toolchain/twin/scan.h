// What a candidate's source declares, found from its tokens: functions, what each mentions, who waits.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../common/tokens.h"

namespace warpsmith::toolchain {

// A definition or a prototype at namespace or class scope. Numbers are positions in the list of tokens.
struct Function {
  std::string name;      // "operator" for operators
  std::size_t head = 0;  // first token of the declaration
  std::size_t name_at = 0, params_open = 0, params_close = 0;
  std::size_t body_open = 0, body_close = 0;  // both 0 for a prototype
  bool is_global = false, is_device = false, is_constexpr = false, in_class = false, is_template = false;
  std::string class_name;
  bool defined() const { return body_close != 0; }
};

struct Scan {
  std::vector<Function> functions;
  std::map<std::string, std::vector<std::size_t>, std::less<>>
      macros;                                  // name -> place of its #define among the tokens
  std::set<std::string, std::less<>> classes;  // names of structs and classes
  // `__shared__` declarations outside functions: positions of the first token and of the `;`.
  std::vector<std::pair<std::size_t, std::size_t>> file_shared;
  std::set<std::string, std::less<>>
      needs_context;                         // functions and macros whose body asks who runs it, at any depth
  std::set<std::string, std::less<>> waits;  // … or waits for another thread
  std::set<std::string, std::less<>> grid_syncs;  // … or mentions this_grid
};

// Whether CUDA's function or type of this name makes a thread wait for others.
bool name_waits(std::string_view name);

// Throws SourceProblem on what the twin or CUDA does not have.
Scan scan_source(const CleanSource& source);

// Position of the bracket that closes the one at `open`; tokens.size() where there is none.
std::size_t matching(const std::vector<Token>& tokens, std::size_t open);
// At a `<`: position of the `>` that closes a template argument list; tokens.size() where it is none.
std::size_t matching_angle(const std::vector<Token>& tokens, std::size_t open);

// Throws SourceProblem at the first construct that is refused: asm, wmma, cuda::, textures, includes other
// than CUDA's, …
void refuse_constructs(const CleanSource& source);

}  // namespace warpsmith::toolchain

#include "linker_log.h"

#include <algorithm>
#include <optional>

#include "../common/compile_unit.h"
#include "../common/elf_file.h"
#include "elf_check.h"
#include "warpsmith/base/text.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::string_view kDestructors = "__dso_handle";  // registers them, and is nowhere

// "ns::f<3>(float)" -> "f"
std::string plain_name(const std::string& name) {
  const std::string head = name.substr(0, name.find_first_of("(<["));
  const std::size_t begin = head.find_last_of(": ");
  return begin == std::string::npos ? head : head.substr(begin + 1);
}

// Where the token `name` stands first, or with a `~` right in front of some name.
std::string placed(const Rewritten& rewritten, std::string_view name, bool destructor, std::string message) {
  const std::string_view source = rewritten.text;
  const std::vector<Token> tokens = tokens_of(source, 1);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool found = destructor
                           ? tokens[i].text == "~" && i + 2 < tokens.size() &&
                                 tokens[i + 1].kind == TokenKind::kIdentifier && tokens[i + 2].text == "("
                           : tokens[i].kind == TokenKind::kIdentifier && tokens[i].text == name;
    if (!found) continue;
    const int column = original_column(rewritten, tokens[i].line, column_at(source, tokens[i].offset));
    return place_of({tokens[i].line, column, std::move(message), false});
  }
  return "kernel.cu: error: " + message + "\n";
}

// "undefined symbol `_ZL1ff' can not …": _ZL1ff
std::optional<std::string> undefined_symbol(const std::string& line) {
  for (const std::string_view what :
       {"undefined symbol `", "undefined hidden symbol `", "undefined reference to `"}) {
    const std::size_t at = line.find(what);
    if (at == std::string::npos) continue;
    const std::size_t begin = at + what.size();
    return line.substr(begin, line.find('\'', begin) - begin);
  }
  return std::nullopt;
}

// Of "/usr/bin/ld: /tmp/a.o: message" and "/tmp/a.s:7: Error: message" the message.
std::string message_of(const std::string& line) {
  constexpr std::string_view kAssembler = ": Error: ", kLinker = "ld: ";
  if (const std::size_t at = line.find(kAssembler); at != std::string::npos)
    return line.substr(at + kAssembler.size());
  const std::size_t at = line.find(kLinker);
  if (at == std::string::npos || line.find("warning: ") != std::string::npos ||
      line.find("in function `") != std::string::npos || line.find("final link failed") != std::string::npos)
    return "";
  const std::size_t object = line.rfind(".o: ");
  const std::string message = line.substr(object == std::string::npos ? at + kLinker.size() : object + 4);
  return message.find('/') == std::string::npos ? message : "";
}

}  // namespace

std::vector<std::string> linker_errors(std::string_view output, const Rewritten& rewritten) {
  std::vector<std::string> errors;
  const auto add = [&](std::string error) {
    error.pop_back();
    if (std::find(errors.begin(), errors.end(), error) == errors.end()) errors.push_back(std::move(error));
  };
  for (const std::string& line : split_lines(output)) {
    const std::optional<std::string> symbol = undefined_symbol(line);
    if (symbol == kDestructors) {
      add(placed(rewritten, "", true, kNoConstructors));
    } else if (symbol) {
      const std::string name = plain_name(demangle(*symbol).value_or(*symbol));
      add(placed(rewritten, name, false,
                 "`" + name + "` has no code of its own to be read, written or called in the middle"));
    } else if (const std::string message = message_of(line); !message.empty()) {
      add("kernel.cu: error: " + message + "\n");
    }
  }
  return errors;
}

}  // namespace warpsmith::toolchain

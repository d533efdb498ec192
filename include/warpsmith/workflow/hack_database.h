// A hack database: a folder of confirmed cases that people share and curate, and that prompts quote. Format
// document: results/hack_database.md.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/records/hack.h"

namespace warpsmith::workflow {

struct HackDatabase {
  std::vector<HackCase> cases;  // oldest first; of one date by candidate id and kind
  std::string digest;           // SHA-256 of what a prompt may depend on: ids, kinds, reasons, their order
};

// Every case below `folder`: each subfolder, but for those whose names begin with a dot. Mistakes go to
// `diagnostics`, with file, line and column; nothing is returned where there are any.
std::optional<HackDatabase> load_hack_database(const std::filesystem::path& folder, Diagnostics& diagnostics);

// What became of a case that was to be added.
struct AddedHack {
  std::string name;    // of its folder in the database
  bool added = false;  // false: the same candidate and kind is there already, and was left alone
};

// Adds `cases`, which get the date `date`, to the database in `folder`, which is made where it is missing;
// one answer for each. A case's folder appears whole or not at all, and nothing that is there is ever
// changed. Throws InvalidInput where the database has mistakes, and Error where a case cannot be written.
std::vector<AddedHack> add_to_hack_database(const std::filesystem::path& folder,
                                            const std::vector<HackCase>& cases, const std::string& date);

}  // namespace warpsmith::workflow

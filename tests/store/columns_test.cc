// results/README.md against the tables of results.h5: each column with its unit and meaning, and no other.
#include <gtest/gtest.h>

#include "document_rows.h"
#include "warpsmith/store/tables.h"

namespace warpsmith::store {
namespace {

template <typename Row>
std::string row_of(const Field<Row>& field) {
  const bool maybe = std::visit([](const auto& column) { return column.may_be_unknown; }, field.column);
  const bool real = std::holds_alternative<FieldColumn<Row, double>>(field.column);
  std::string meaning = field.notes.meaning;
  if (maybe) meaning += real ? ". NaN: not known" : ". −1: not known";
  if (field.notes.since > 0) meaning += " (since schema " + std::to_string(field.notes.since) + ")";
  const std::string unit = field.notes.unit;
  return "| `" + field.name + "` | " + (unit.empty() ? "" : unit + " ") + "| " + meaning + " |\n";
}

TEST(Columns, AreThoseOfTheFormatDocument) {
  for_each_table([](const auto& table) {
    std::string rows;
    for (const auto& field : table.fields) {
      EXPECT_STRNE(field.notes.meaning, "") << table.name << "/" << field.name;
      rows += row_of(field);
    }
    EXPECT_EQ(document_rows("results/README.md", std::string("Columns of `/") + table.name + "`"), rows)
        << "results/README.md, below \"Columns of `/" << table.name << "`\", should have these rows:\n"
        << rows;
  });
}

}  // namespace
}  // namespace warpsmith::store

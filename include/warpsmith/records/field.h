// The fields of a record, each said once: name, member, unit, meaning, and since which schema of results.h5.
// A table of them (Fields) reads and writes the record's JSON, makes the columns of results.h5 and of CSV
// exports, and the tables of results/README.md are checked against it.
//
//   Fields<Resources> fields = {field("cpus", &Resources::cpus, {.meaning = "CPU cores of a shard"})};
//   Json json = fields_to_json(fields, resources);
//   fields_from_json(fields, json, resources);
//
// A record that is part of another one declares `const Fields<T>& fields_of(const T&)` beside it. Then it is
// JSON by itself, and so are lists, maps and optionals of it:
//
//   field("files", &Candidate::files, {.meaning = "its files"})  // a vector of SourceFile
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"

namespace warpsmith {

using ShapeSizes = std::vector<std::pair<std::string, std::int64_t>>;
using WordMap = std::map<std::string, std::string>;

std::string shape_text(const ShapeSizes& shape);      // "M=256 N=1024"
ShapeSizes shape_from_text(const std::string& text);  // throws Error
std::string words_text(const WordMap& words);         // JSON; empty where there are none
WordMap words_from_text(const std::string& text);     // throws Error

enum class Presence {
  kIfSet,    // in the JSON unless it is the default (0, empty, false, not known); what is no cell: unless it
             // is an optional that is not set
  kWritten,  // always in the JSON; the default where a record lacks it
  kNeeded,   // always in the JSON; a record without it is refused
  kColumn,   // a column alone
};

inline constexpr std::size_t kLongestText = ~std::size_t{0};

struct FieldNotes {
  const char* unit = "";
  const char* meaning = "";
  int since = 0;                         // first schema of results.h5 that has the column
  Presence presence = Presence::kIfSet;  // in JSON
  std::size_t width = 0;                 // bytes of a text column: 0 any, kLongestText as the longest takes
  const char* json = nullptr;            // JSON pointer; nullptr: the name, at the top
  bool column = true;                    // false: in JSON alone, as all that is no cell (below)
};

// A field as a column of one value a row.
template <typename R, typename T>
struct FieldColumn {
  std::function<std::optional<T>(const R&)> get;  // nothing: not known
  std::function<void(R&, T)> set;
  bool may_be_unknown = false;
};

template <typename R>
struct Field {
  std::string name;
  FieldNotes notes;
  std::variant<FieldColumn<R, std::string>, FieldColumn<R, std::int64_t>, FieldColumn<R, double>> column;
  std::function<Json(const R&)> get_json;         // null: not set
  std::function<void(R&, const Json&)> set_json;  // throws Json::exception
  std::function<bool(const R&)> where = {};       // records that have it in JSON; empty: all
};

template <typename R>
using Fields = std::vector<Field<R>>;

// ---- how values become cells of a column, and JSON ----

namespace field_value {

template <typename T>
struct Plain {
  using Type = T;
};
template <typename T>
struct Plain<std::optional<T>> {
  using Type = T;
};

template <typename T>
using CellOf = std::conditional_t<std::is_floating_point_v<T>, double,
                                  std::conditional_t<std::is_integral_v<T>, std::int64_t, std::string>>;

// What can be a column. Other types are in JSON alone.
template <typename T>
inline constexpr bool kIsCell =
    std::is_enum_v<T> || std::is_arithmetic_v<T> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, ShapeSizes> || std::is_same_v<T, WordMap>;

// Enums are text: to_string(T), and from_text(std::string_view, T&) beside them.
template <typename T>
CellOf<T> cell(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return std::string(to_string(value));
  else if constexpr (std::is_same_v<T, ShapeSizes>)
    return shape_text(value);
  else if constexpr (std::is_same_v<T, WordMap>)
    return words_text(value);
  else
    return static_cast<CellOf<T>>(value);
}

template <typename T>
T from_cell(CellOf<T>&& value) {
  if constexpr (std::is_enum_v<T>) {
    T out{};
    from_text(value, out);
    return out;
  } else if constexpr (std::is_same_v<T, ShapeSizes>) {
    return shape_from_text(value);
  } else if constexpr (std::is_same_v<T, WordMap>) {
    return words_from_text(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else {
    return static_cast<T>(std::move(value));
  }
}

template <typename T>
Json json(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return to_string(value);
  else
    return value;
}

template <typename T>
T from_json(const Json& json) {
  if constexpr (std::is_enum_v<T>) {
    T out{};
    from_text(json.get<std::string>(), out);
    return out;
  } else {
    return json.get<T>();
  }
}

}  // namespace field_value

template <typename R, typename T, typename At>
auto column_at(At at) {
  using Value = typename field_value::Plain<T>::Type;
  constexpr bool kMaybe = !std::is_same_v<T, Value>;
  FieldColumn<R, field_value::CellOf<Value>> column;
  column.may_be_unknown = kMaybe;
  column.get = [at](const R& record) -> std::optional<field_value::CellOf<Value>> {
    const T& value = at(record);
    if constexpr (kMaybe) {
      if (!value) return std::nullopt;
      return field_value::cell<Value>(*value);
    } else {
      return field_value::cell<Value>(value);
    }
  };
  column.set = [at](R& record, field_value::CellOf<Value> value) {
    at(record) = field_value::from_cell<Value>(std::move(value));
  };
  return column;
}

// A field reached by `at`: a function from R& to T& (of a const R& to a const T&), of an optional or of any
// type named above.
template <typename R, typename T, typename At>
Field<R> field_at(std::string name, At at, FieldNotes notes) {
  using Value = typename field_value::Plain<T>::Type;
  Field<R> out{std::move(name), notes, FieldColumn<R, std::string>{}, {}, {}};
  if constexpr (field_value::kIsCell<Value>)
    out.column = column_at<R, T>(at);
  else
    out.notes.column = false;
  out.get_json = [at, if_set = notes.presence == Presence::kIfSet](const R& record) -> Json {
    const T& value = at(record);
    if constexpr (!std::is_same_v<T, Value>) {
      return value ? field_value::json<Value>(*value) : Json(nullptr);
    } else {
      if constexpr (field_value::kIsCell<T>)
        if (if_set && value == T{}) return nullptr;
      return field_value::json<Value>(value);
    }
  };
  out.set_json = [at](R& record, const Json& json) { at(record) = field_value::from_json<Value>(json); };
  return out;
}

// The key `schema`: a record of another schema is refused. `schema`: text that lives as long as the program.
template <typename R>
Field<R> schema_field(const char* schema) {
  Field<R> out{
      "schema", {.meaning = schema, .presence = Presence::kNeeded}, FieldColumn<R, std::string>{}, {}, {}};
  out.notes.column = false;
  out.get_json = [schema](const R&) -> Json { return schema; };
  out.set_json = [schema](R&, const Json& json) {
    if (json != schema) throw Error(std::string("schema is not ") + schema);
  };
  return out;
}

template <typename R, typename Base, typename T>
requires std::is_base_of_v<Base, R> Field<R> field_of(std::string name, T Base::*member, FieldNotes notes) {
  return field_at<R, T>(
      std::move(name), [member](auto& record) -> auto& { return record.*member; }, notes);
}

template <typename R, typename T>
Field<R> field(std::string name, T R::*member, FieldNotes notes) {
  return field_of<R>(std::move(name), member, notes);
}

// The fields of a part of R, as R's own. `part`: a member that is of type P.
template <typename R, typename P>
Field<R> lifted(const Field<P>& of_part, P R::*part) {
  Field<R> out{of_part.name, of_part.notes, {}, {}, {}};
  std::visit(
      [&](const auto& column) {
        using C = std::decay_t<decltype(column.get(std::declval<const P&>()))>;
        using T = typename C::value_type;
        out.column = FieldColumn<R, T>{
            [get = column.get, part](const R& record) { return get(record.*part); },
            [set = column.set, part](R& record, T value) { set(record.*part, std::move(value)); },
            column.may_be_unknown};
      },
      of_part.column);
  out.get_json = [get = of_part.get_json, part](const R& record) { return get(record.*part); };
  out.set_json = [set = of_part.set_json, part](R& record, const Json& json) { set(record.*part, json); };
  if (of_part.where)
    out.where = [where = of_part.where, part](const R& record) { return where(record.*part); };
  return out;
}

// ---- JSON of a whole record ----

namespace field_json {
void put(Json& object, const std::string& name, const FieldNotes& notes, Json&& value);
const Json* find(const Json& object, const std::string& name, const FieldNotes& notes);
// Throws Error that names the field and the type that it should have.
[[noreturn]] void fail(const std::string& name, const Json::exception& why);
[[noreturn]] void fail_missing(const std::string& name);
}  // namespace field_json

template <typename R>
void put_fields(const Fields<R>& fields, const R& record, Json& json) {
  for (const Field<R>& field : fields) {
    if (field.notes.presence == Presence::kColumn || (field.where && !field.where(record))) continue;
    Json value = field.get_json(record);
    if (!value.is_null()) field_json::put(json, field.name, field.notes, std::move(value));
  }
}

template <typename R>
Json fields_to_json(const Fields<R>& fields, const R& record) {
  Json json = Json::object();
  put_fields(fields, record, json);
  return json;
}

// In the order of the table, so that `where` may look at fields that stand before. What the JSON lacks, or
// has as null, stays as it is. Throws Error where a needed field is missing or one is of another type.
template <typename R>
void fields_from_json(const Fields<R>& fields, const Json& json, R& record) {
  for (const Field<R>& field : fields) {
    if (field.notes.presence == Presence::kColumn || (field.where && !field.where(record))) continue;
    const Json* value = field_json::find(json, field.name, field.notes);
    if (value == nullptr || value->is_null()) {
      if (field.notes.presence == Presence::kNeeded) field_json::fail_missing(field.name);
      continue;
    }
    try {
      field.set_json(record, *value);
    } catch (const Json::exception& e) {
      field_json::fail(field.name, e);
    }
  }
}

// A whole record. Messages begin with `what`. Throws Error, also where `json` is no object.
template <typename R>
R record_from_json(const Fields<R>& fields, const Json& json, const std::string& what) {
  R record;
  try {
    if (!json.is_object()) throw Error("it is no JSON object");
    fields_from_json(fields, json, record);
  } catch (const Error& e) {
    throw Error(what + ": " + e.what());
  }
  return record;
}

// A record is asked for, and the value is no map.
class NoJsonObject : public Json::exception {
 public:
  NoJsonObject() : Json::exception(302, "it is no JSON object") {}
};

template <typename T>
concept HasFields = requires(const T& record) {
  { fields_of(record) } -> std::same_as<const Fields<T>&>;
};

}  // namespace warpsmith

template <warpsmith::HasFields T>
struct nlohmann::adl_serializer<T, void> {
  static void to_json(warpsmith::Json& json, const T& record) {
    json = warpsmith::fields_to_json(fields_of(record), record);
  }
  static void from_json(const warpsmith::Json& json, T& record) {
    if (!json.is_object()) throw warpsmith::NoJsonObject();
    warpsmith::fields_from_json(fields_of(record), json, record);
  }
};

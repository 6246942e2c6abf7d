// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace backendgen {

/// The atoms of schema types. `kOther` is a type that this backendgen does not know.
enum class Atom {
  kTensor,
  kScalar,
  kInt,
  kSymInt,
  kFloat,
  kBool,
  kSymBool,
  kString,
  kScalarType,
  kLayout,
  kDevice,
  kDeviceIndex,
  kMemoryFormat,
  kGenerator,
  kStorage,
  kStream,
  kQScheme,
  kDimname,
  kDimVector,
  kOther,
};

/// What follows an atom: `?`, `[]` or `[2]`.
struct Suffix {
  enum Kind { kOptional, kList } kind = kOptional;
  std::string size;  // of a list: its digits, or nothing

  bool operator==(const Suffix&) const = default;
};

/// A type such as `Tensor`, `int[2]?` or `Tensor?[]`: an atom and its suffixes from the inside out.
struct Type {
  Atom atom = Atom::kOther;
  std::string name;  // the atom as it is written
  std::vector<Suffix> suffixes;

  /// A tensor, an optional one, or a list of either.
  bool tensor_like() const { return atom == Atom::kTensor; }
  bool is(Atom wanted) const { return atom == wanted && suffixes.empty(); }
  std::string text() const;
  bool operator==(const Type&) const = default;
};

/// What an argument or a return says about memory: `a!` in `Tensor(a!)`.
struct Alias {
  std::string text;  // without the parentheses: "a", "a!", "a -> *"

  bool write() const { return text.find('!') != std::string::npos; }
  /// A view whose result may alias any element: "a -> *".
  bool wildcard() const { return text.find('*') != std::string::npos; }
  bool operator==(const Alias&) const = default;
};

struct Argument {
  std::string name;
  Type type;
  std::optional<Alias> alias;
  std::optional<std::string> value;  // the default as it is written

  bool write() const { return alias && alias->write(); }
  std::string text() const;
};

struct Return {
  std::string name;  // may be empty
  Type type;
  std::optional<Alias> alias;

  bool write() const { return alias && alias->write(); }
  std::string text() const;
};

enum class SchemaKind { kFunctional, kInplace, kOut, kMutable };

/// "add_.Tensor": the base `add_` and the overload `Tensor`.
struct OperatorName {
  std::string base;
  std::string overload;

  static OperatorName parse(std::string_view text);
  std::string text() const;

  /// `add_` and `__iadd__` work in place.
  bool inplace() const;
  /// What the variants of an operator share: `add` of `add_`, `__and__` of `__iand__`, `foo` of
  /// `foo_functional`.
  std::string root() const;
};

/// The schema of an operator; prints exactly the text that it was parsed from.
class Schema {
 public:
  Schema(OperatorName name, std::vector<Argument> arguments, std::size_t positional,
         std::vector<Return> returns);

  const OperatorName& name() const { return name_; }
  std::span<const Argument> arguments() const { return arguments_; }
  std::span<const Return> returns() const { return returns_; }

  /// The three parts of the arguments, in this order: those before `*`; keyword-only ones; the
  /// tensors that results are written to (keyword-only, from the first one with `!` on).
  std::span<const Argument> positional() const;
  std::span<const Argument> keyword_only() const;
  std::span<const Argument> out() const;

  SchemaKind kind() const;

  /// Whether an argument is written to.
  bool writes() const;

  /// Whether a result shares memory with an argument that is not written to: `Tensor(a)`.
  bool views() const;

  /// Whether a positional or keyword-only argument is a symbolic integer.
  bool has_symint() const;

  std::string text() const;

 private:
  OperatorName name_;
  std::vector<Argument> arguments_;
  std::size_t positional_;
  std::size_t out_;
  std::vector<Return> returns_;
};

/// Where the four arguments of a tensor's options (dtype, layout, device, pin_memory) begin among
/// `arguments`, when they stand there in this order.
std::optional<std::size_t> find_tensor_options(std::span<const Argument> arguments);

}  // namespace backendgen

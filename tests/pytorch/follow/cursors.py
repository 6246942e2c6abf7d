# SPDX-License-Identifier: Apache-2.0
"""What libclang says of a declaration, in the words of this comparison."""

from __future__ import annotations

import ctypes
from functools import cache

from clang.cindex import Config, Cursor, CursorKind, TokenKind, _CXString

TERSE_OUTPUT = 17  # CXPrintingPolicy_TerseOutput
CONTAINERS = (
    CursorKind.CLASS_DECL,
    CursorKind.STRUCT_DECL,
    CursorKind.CLASS_TEMPLATE,
    CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
    CursorKind.ENUM_DECL,
    CursorKind.UNION_DECL,
)
FUNCTIONS = (
    CursorKind.CXX_METHOD,
    CursorKind.FUNCTION_DECL,
    CursorKind.FUNCTION_TEMPLATE,
    CursorKind.CONSTRUCTOR,
    CursorKind.DESTRUCTOR,
    CursorKind.CONVERSION_FUNCTION,
)


@cache
def library() -> ctypes.CDLL:
    """libclang, with the functions that its Python module leaves out."""
    made = Config().lib
    made.clang_getCursorPrintingPolicy.argtypes = [Cursor]
    made.clang_getCursorPrintingPolicy.restype = ctypes.c_void_p
    setter = made.clang_PrintingPolicy_setProperty
    setter.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint]
    made.clang_getCursorPrettyPrinted.argtypes = [Cursor, ctypes.c_void_p]
    made.clang_getCursorPrettyPrinted.restype = _CXString
    made.clang_getCursorPrettyPrinted.errcheck = _CXString.from_result
    made.clang_PrintingPolicy_dispose.argtypes = [ctypes.c_void_p]
    made.clang_getOverriddenCursors.argtypes = [
        Cursor, ctypes.POINTER(ctypes.POINTER(Cursor)), ctypes.POINTER(ctypes.c_uint),
    ]  # fmt: skip
    return made


def referenced(cursor: Cursor) -> list[Cursor]:
    """The declarations that a name in our code stands for: several where it is overloaded."""
    named = cursor.referenced
    if named is None or named == cursor:
        return []
    lib = library()
    found = [named]
    if named.kind == CursorKind.OVERLOADED_DECL_REF:
        count = lib.clang_getNumOverloadedDecls(named)
        found = [lib.clang_getOverloadedDecl(named, index) for index in range(count)]
    return [template_of(one) for one in found]


def template_of(cursor: Cursor) -> Cursor:
    """The template that a declaration is an instance of, else the declaration."""
    made = library().clang_getSpecializedCursorTemplate(cursor)
    return cursor if made is None or made.kind.is_invalid() else made


def overridden(cursor: Cursor) -> list[Cursor]:
    """The virtual functions that a member function overrides directly."""
    found, count = ctypes.POINTER(Cursor)(), ctypes.c_uint()
    library().clang_getOverriddenCursors(cursor, ctypes.byref(found), ctypes.byref(count))
    cursors = []
    for index in range(count.value):
        one = Cursor.from_buffer_copy(found[index])
        one._tu = cursor._tu
        cursors.append(one)
    return cursors


def bases(cursor: Cursor) -> list[Cursor]:
    """The classes that a class derives from, as far as they do not depend on its parameters."""
    found = []
    for one in cursor.get_children():
        if one.kind == CursorKind.CXX_BASE_SPECIFIER:
            made = one.type.get_canonical().get_declaration()
            named = made if not made.kind.is_invalid() else one.referenced
            if named is not None and named.kind in CONTAINERS:
                found.append(template_of(named.get_definition() or named))
    return found


def interesting(cursor: Cursor) -> bool:
    """Not a parameter, a namespace or something local."""
    kind = cursor.kind
    if kind in (CursorKind.NAMESPACE, CursorKind.PARM_DECL, CursorKind.TEMPLATE_TYPE_PARAMETER):
        return False
    parent = cursor.semantic_parent
    if kind in FUNCTIONS and parent is not None and parent.location == cursor.location:
        return False  # written by the compiler
    return kind.is_declaration() and (parent is None or parent.kind not in FUNCTIONS)


def qualified(cursor: Cursor) -> str:
    names: list[str] = []
    scope: Cursor | None = cursor
    while scope is not None and scope.kind != CursorKind.TRANSLATION_UNIT:
        if scope.spelling and not scope.is_anonymous():
            names.insert(0, scope.spelling)
        scope = scope.semantic_parent
    return "::".join(names)


def key(cursor: Cursor) -> str:
    """What tells a declaration from its overloads."""
    if cursor.kind in FUNCTIONS:
        return f"{qualified(cursor)} {cursor.type.spelling}"
    return qualified(cursor)


def declaration(cursor: Cursor) -> str:
    """A declaration as text, without bodies: `virtual void f(int x = 0) const noexcept`."""
    lib = library()
    policy = lib.clang_getCursorPrintingPolicy(cursor)
    lib.clang_PrintingPolicy_setProperty(policy, TERSE_OUTPUT, 1)
    text = str(lib.clang_getCursorPrettyPrinted(cursor, policy))
    lib.clang_PrintingPolicy_dispose(policy)
    return " ".join(text.replace("{}", "").split())


def tokens(cursor: Cursor) -> list[str]:
    """The words of a declaration or macro, without comments."""
    kept = (one for one in cursor.get_tokens() if one.kind != TokenKind.COMMENT)
    return [one.spelling for one in kept]


def meaning(cursor: Cursor) -> tuple[str, ...]:
    """What has to be equal for a declaration to be the same: not the names of parameters."""
    if cursor.kind not in FUNCTIONS or cursor.kind == CursorKind.FUNCTION_TEMPLATE:
        return (declaration(cursor),)
    parameters = []
    for one in cursor.get_arguments():
        words = tokens(one)
        default = words[words.index("=") :] if "=" in words else []
        parameters.append(" ".join([one.type.get_canonical().spelling, *default]))
    return (
        cursor.spelling,
        cursor.type.get_canonical().spelling,
        str(cursor.exception_specification_kind),
        *parameters,
        f"static {cursor.is_static_method()} pure {cursor.is_pure_virtual_method()}",
        f"virtual {cursor.is_virtual_method()} default {cursor.is_default_method()}",
    )

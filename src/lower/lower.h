/* lower: from the checked tree to IR, one IR function per specialisation.
 *
 * Lowering is driven by demand as well: a function is declared when something refers to it, and lower_run
 * gives bodies to all that were declared. Generic code is lowered with a substitution that makes every type
 * concrete.
 *
 * How the front end's types look in the IR:
 *   matrix             array of row vectors
 *   struct, tuple      record with the fields in order (of the base struct first)
 *   Optional<T>        record { value, hasValue }
 *   DifferentialPair   record { p, d }
 *   enum               its underlying integer; what its cases are called stays beside (enums.c)
 *   interface          record { tag, one field per type that can stand behind it }: a sum, of which the field named by the tag is
 *                      alive. In buffers the compact form of the language is used, and converted when loaded and stored.
 *   I.Differential     record with the Differential of each of those types
 *   ConstantBuffer<T>  pointer to T
 */
#ifndef SLOPE_LOWER_H
#define SLOPE_LOWER_H

#include "check/check.h"
#include "ir/ir.h"

typedef struct Lowerer Lowerer;

typedef struct LowerConfig {
    int64_t (*most_carried)(void *user, Func *func); /* as ir_most_carried, of a function as it was lowered */
    void *user;
} LowerConfig;

Lowerer *lower_new(Arena *arena, Checker *checker, Module *module, const LowerConfig *config);
const Type *lower_type(Lowerer *lowerer, const Type *type); /* concrete */
/* The IR function for a declaration with arguments, with derivative operators applied; the body comes with
 * lower_run. */
Func *lower_func(Lowerer *lowerer, Decl *decl, const Subst *subst, const uint8_t *modes, int nmodes);
Func *lower_entry(Lowerer *lowerer, Decl *decl, const Subst *subst);
/* An entry point that calls a derivative of one; its parameters are those of the derivative. */
Func *lower_derived_entry(Lowerer *lowerer, Decl *decl, const Subst *subst, const uint8_t *modes, int nmodes);
/* The uniform that a global variable (or a field of a cbuffer) is. */
Global *lower_uniform(Lowerer *lowerer, Decl *decl);
void lower_run(Lowerer *lowerer);
/* Links the user's functions with their custom derivatives and substitutes, which otherwise happens when they
 * are needed. */
void lower_links(Lowerer *lowerer);

#endif

/* What the targets of libFuzzer share. */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer calls these, */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
/* and offers this. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

/* mutate.c: changes text so that it still looks like a program: names become other names of it, numbers other
 * numbers, lines come and go. Returns the new size. */
size_t mutate_text(uint8_t *data, size_t size, size_t room, unsigned seed);

#endif

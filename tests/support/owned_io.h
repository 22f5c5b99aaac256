/*
 * The operating system's calls, and a look at the partial folder whenever something is made in it:
 * all that is there must be in the description of what may be, or a killed run would leave what the
 * next one refuses to remove. Databases make files by themselves: they are seen with the next call.
 * Threads: any, as for every drps_io.
 */
#ifndef DRPS_TESTS_OWNED_IO_H
#define DRPS_TESTS_OWNED_IO_H

#include <stdatomic.h>

#include "base/folder/drps_stage.h"

struct owned_io {
    struct drps_io io; /* what the code under test gets */
    struct drps_io_ops ops;
    const struct drps_owned *owned;
    atomic_int looks;
};

void owned_io_init(struct owned_io *o, const struct drps_stage_kind *kind);

#endif

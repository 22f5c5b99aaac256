/* Lets DRPS_INSTRUCTIONS choose the kernels of a test, as it chooses those of a tool. */
#include <stdio.h>
#include <stdlib.h>

#include "base/kernel/drps_level.h"

static __attribute__((constructor)) void choose(void)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_level_set(getenv("DRPS_INSTRUCTIONS"), &err) == 0) return;
    printf("SKIPPED: %s\n", err.text);
    exit(77);
}

#include "support/on_device.h"

#include <stdio.h>

int run_on_device(int argc, char **argv, struct drps_device_use *use, int (*tests)(void))
{
    struct drps_err err = DRPS_ERR_INIT;
    int rc = drps_device_open(argc > 1 ? argv[1] : NULL, use, &err);
    if (rc == DRPS_E_NOT_FOUND) {
        printf("SKIPPED: %s\n", err.text);
        return 77;
    }
    if (rc < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    rc = tests();
    drps_device_close(use);
    return rc;
}

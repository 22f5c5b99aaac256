#include "support/uring_here.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/io/drps_aio.h"
#include "support/scratch.h"

int over_uring;

static unsigned long requests; /* over io_uring, so far */

int uring_here(const char *what)
{
    struct scratch s;
    struct drps_aio *aio;
    struct drps_aio_about about;
    struct drps_err err = DRPS_ERR_INIT;
    scratch_begin(&s);
    struct drps_aio_config c = {.io = drps_io_os(),
                                .path = scratch_path(&s, "probe"),
                                .file_bytes = DRPS_AIO_ALIGN,
                                .buffers = aligned_alloc(DRPS_AIO_ALIGN, DRPS_AIO_ALIGN),
                                .buffers_bytes = DRPS_AIO_ALIGN,
                                .depth = 1};
    if (!c.buffers || drps_aio_open(&c, &aio, &err) < 0) abort();
    drps_aio_about(aio, &about);
    drps_aio_close(aio);
    free(c.buffers);
    scratch_end(&s);
    const int here = strcmp(about.engine, "io_uring") == 0;
    if (!here) (void)fprintf(stderr, "SKIPPED: %s over io_uring: %s\n", what, about.why);
    return here;
}

struct fault_io *uring_faults_new(void)
{
    struct fault_io *f = fault_io_new(drps_io_os());
    assert_non_null(f);
    if (over_uring) fault_io_see_requests(f);
    return f;
}

void uring_faults_free(struct fault_io *f)
{
    requests += f->requests;
    fault_io_free(f);
}

int uring_begin(const char *name)
{
    requests = 0;
    return over_uring = uring_here(name);
}

int uring_end(void **state)
{
    (void)state;
    return requests ? 0 : -1;
}

/*
 * Tests of faults that run twice: with requests by threads, whose calls pass through the seam, and
 * with requests over io_uring, which the twins see as they are asked for. Where the kernel gives no
 * io_uring the second time is left out, and said so.
 */
#ifndef DRPS_TESTS_URING_HERE_H
#define DRPS_TESTS_URING_HERE_H

#include "support/fault_io.h"

/* Whether this process gets an io_uring; where not, standard error says what is skipped, and why.
 */
int uring_here(const char *what);

/* Faults over the operating system's calls, for a test that runs twice. */
struct fault_io *uring_faults_new(void);
void uring_faults_free(struct fault_io *f);

extern int over_uring; /* 1: this is the second time */

/* Run a group of cmocka's tests once more over io_uring, and see that requests went there. Returns
 * how many failed. */
#define RUN_OVER_URING(name, tests)                                                                \
    (uring_begin(name) ? cmocka_run_group_tests_name(name ", io_uring", tests, NULL, uring_end) : 0)
int uring_begin(const char *name);
int uring_end(void **state);

#endif

/* Names of any bytes in a page: none of them becomes markup, and all of it is XML. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/folder/drps_escape.h"
#include "support/scratch.h"

#define UNKNOWN "\xef\xbf\xbd"

static const struct {
    const char *name, *text, *expected;
} cases[] = {
    {"an element", "<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
    {"quotes", "\" ' &", "&quot; &#39; &amp;"},
    {"an entity", "&lt;", "&amp;lt;"},
    {"line ends and tabs stay", "a\tb\nc", "a\tb\nc"},
    {"control characters", "a\x01\x1b\x7f\xc2\x9bz", "a" UNKNOWN UNKNOWN UNKNOWN UNKNOWN "z"},
    {"UTF-8", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
    {"no UTF-8", "a\xff\xc3", "a" UNKNOWN UNKNOWN},
    {"a surrogate", "\xed\xa0\x80", UNKNOWN UNKNOWN UNKNOWN},
    {"noncharacters", "\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd", UNKNOWN UNKNOWN UNKNOWN},
};

static void test_escape_makes_no_markup(void **state)
{
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_textfile f;
        struct drps_err err = DRPS_ERR_INIT;
        size_t n;
        const char *path = scratch_path(s, "page");
        int rc = drps_textfile_open(&f, drps_io_os(), path, 1, &err);
        if (rc == 0)
            rc = drps_textfile_put_name(&f, DRPS_NAME_IN_HTML, cases[i].text, strlen(cases[i].text),
                                        &err);
        if (rc == 0) rc = drps_textfile_commit(&f, &err);
        drps_textfile_close(&f);
        if (rc < 0) fail_msg("%s: %s", cases[i].name, err.text);
        char *found = scratch_read(path, &n);
        if (n != strlen(cases[i].expected) || memcmp(found, cases[i].expected, n) != 0)
            fail_msg("%s: expected %s, found %.*s", cases[i].name, cases[i].expected, (int)n,
                     found);
        free(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_escape_makes_no_markup, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests_name("escape", tests, NULL, NULL);
}

/* Number parsing against strtoull() and strtof(): the float must be the same, bit for bit. */
#include <ctype.h>
#include <locale.h>
#include <math.h>

#include "base/drps_rng.h"
#include "index/reader/text/drps_number.h"
#include "index/reader/reader_files.h"

enum { ROUNDS = 3000000 / DRPS_TEST_ONE_IN };
static const uint64_t seed = 20240607;

/*
 * A copy with room to load ahead, followed by digits that must not be taken: `stop` ends the
 * number.
 */
static const char *padded(const char *text, char stop)
{
    static char buf[6000];
    size_t n = strlen(text);
    assert_true(n + 32 < sizeof(buf));
    memcpy(buf, text, n);
    buf[n] = stop;
    memset(buf + n + 1, '7', 31);
    return buf;
}

/* What strtof() says, in the rules of drps_number_float(). Returns the length, 0 for none. */
static size_t reference(const char *text, float *v_out)
{
    const char *p = text + (*text == '-' || *text == '+');
    char *end;
    if (!isdigit((unsigned char)*p) && !(*p == '.' && isdigit((unsigned char)p[1]))) return 0;
    if (*p == '0' && (p[1] | 0x20) == 'x') { /* hexadecimal: only the 0 counts */
        *v_out = *text == '-' ? -0.0f : 0.0f;
        return (size_t)(p - text) + 1;
    }
    *v_out = strtof(text, &end);
    return isfinite(*v_out) ? (size_t)(end - text) : 0;
}

static void check_float(const char *text, char stop)
{
    float want = 0, got = 0;
    const char *p = padded(text, stop);
    size_t want_n = reference(text, &want);
    const char *end = drps_number_float(p, &got);
    size_t got_n = end ? (size_t)(end - p) : 0;
    if (want_n == got_n && (want_n == 0 || memcmp(&want, &got, sizeof(want)) == 0)) return;
    fail_msg(
        "input:    '%s' (seed %llu)\nexpected: %a, %zu characters\nfound:    %a, %zu characters",
        text, (unsigned long long)seed, (double)want, want_n, (double)got, got_n);
}

static void test_number_float_tricky(void **state)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "+0",
        "0.0",
        ".0",
        "0.",
        ".",
        "",
        "-",
        "+",
        "e5",
        ".e5",
        "1e",
        "1e+",
        "1e-",
        "1e5",
        "1E5",
        "1e+05",
        "1e-05",
        "00000000000000000000000000000001",
        "0.1",
        "-0.1",
        "0.3",
        "1.1.1",
        "1..1",
        "--1",
        "+-1",
        "inf",
        "-inf",
        "nan",
        "NaN",
        "infinity",
        "0x10",
        "0X1p3",
        "1x",
        "1,5",
        "12345678",
        "123456789",
        "1234567890123456789",
        "12345678901234567890",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999999999999999",
        "3.4028234663852886e38",
        "3.4028235e38",
        "3.4028235677973366e38",
        "340282356779733661637539395458142568447",
        "340282356779733661637539395458142568448",
        "3.5e38",
        "1e39",
        "-1e39",
        "1e400",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "1e-45",
        "7e-46",
        "7.1e-46",
        "1.17549435e-38",
        "1.1754943e-38",
        "5.877471754111438e-39",
        "16777216",
        "16777217",
        "16777218",
        "16777219",
        "16777217.0",
        "16777217.00000000000000000000000000000000000000000001",
        "16777216.99999999999999999999999999999999",
        "33554435",
        "9007199254740993",
        "0.5000000298023223876953125",
        "0.50000002980232238769531250000000001",
        "0.50000002980232238769531249999999999",
        "1.00000005960464477539062",
        "1.00000005960464477539063",
        "1.000000059604644775390625",
        "1.000000059604644775390626",
        "1.000000178813934326171875",
        "0.041841004184100417",
        "0.0041841004184100417",
        "0.00041841004184100417",
        "4.1841004184100417e-05",
        "8388608.5",
        "8388609.5",
        "4194304.25",
        "1e22",
        "1e23",
        "1e-22",
        "1e-23",
        "1e10",
        "1e11",
        "1e-10",
        "1e-11",
        "123456789012345678901234567890e-20",
        "0.000000000000000000000000000000000000000000001",
        "1000000000000000000000000000000000000000000000000e-48",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        check_float(texts[i], ' ');
}

/* The middle between two neighbouring floats, written out whole, and a little beside it. */
static void check_middle(uint64_t r)
{
    uint32_t bits = (uint32_t)r & 0x7fffffffu;
    if (bits >= 0x7f7fffffu) bits = 0x7f7ffffeu;
    float low, high;
    char text[400];
    uint32_t next = bits + 1;
    memcpy(&low, &bits, sizeof(low));
    memcpy(&high, &next, sizeof(high));
    int n = snprintf(text, sizeof(text) - 40, "%.*f", 160, ((double)low + (double)high) / 2);
    assert_true(n > 0);
    check_float(text, ' ');
    memcpy(text + n, "000000000000000000000000000000001", 34);
    check_float(text, ' ');
    n = snprintf(text, sizeof(text), "%.*e", (int)(r >> 60) + 5, ((double)low + (double)high) / 2);
    assert_true(n > 0);
    check_float(text, ' ');
}

static void test_number_float_random(void **state)
{
    static const char *const forms[] = {"%.*g", "%.*e", "%.*f"};
    (void)state;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t a = drps_rng_at(seed, 2 * i), b = drps_rng_at(seed, 2 * i + 1);
        char text[500];
        uint32_t bits = (uint32_t)a;
        float f;
        double d;
        memcpy(&f, &bits, sizeof(f));
        memcpy(&d, &a, sizeof(d));
        switch (b % 8) {
        case 0: /* any float, some digits */
        case 1:
            (void)snprintf(text, sizeof(text), forms[b >> 8 & 1], (int)(b >> 16 & 31), (double)f);
            break;
        case 2: /* numbers as data has them */
            (void)snprintf(text, sizeof(text), forms[(b >> 8) % 3], (int)(b >> 16 & 15),
                           drps_unit_double(a) * (double)(b >> 40 & 1023));
            break;
        case 3: /* whole numbers of any length */
            (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)(a >> (b >> 8 & 63)));
            break;
        case 4: /* digits, a point somewhere, an exponent */
            (void)snprintf(text, sizeof(text), "%llu.%llue%d",
                           (unsigned long long)(a >> (b >> 8 & 63)),
                           (unsigned long long)(b >> (a & 63)), (int)(b >> 16 & 127) - 64);
            break;
        case 5: /* any double */
            (void)snprintf(text, sizeof(text), "%.17g", d);
            break;
        case 6: /* many digits */
            (void)snprintf(text, sizeof(text), "%.*f", (int)(b >> 16 & 127),
                           drps_unit_double(a) * 1e-3);
            break;
        default:
            check_middle(a);
            continue;
        }
        check_float(text, "\n ,\t#"[b >> 32 & 3]);
    }
}

/* Any mixture of the characters that numbers are made of. */
static void test_number_float_garbage(void **state)
{
    static const char letters[16] = "0123456789..eE+-";
    (void)state;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t r = drps_rng_at(seed + 1, i), n = drps_rng_at(seed + 2, i) % 16;
        char text[20] = "";
        for (uint64_t k = 0; k < n; k++, r >>= 4)
            text[k] = letters[r & 15];
        check_float(text, ' ');
    }
}

static void test_number_float_long(void **state)
{
    char text[5001];
    (void)state;
    for (uint64_t i = 0; i < 2000; i++) {
        size_t n = 1 + drps_rng_at(seed + 3, i) % 4900;
        for (size_t k = 0; k < n; k++)
            text[k] = (char)('0' + (i % 3 ? drps_rng_at(seed + i, k) % 10 : 0));
        text[drps_rng_at(seed + 4, i) % n] = '.';
        text[drps_rng_at(seed + 5, i) % n] = '5';
        (void)snprintf(text + n, 20, "e%d", (int)(drps_rng_at(seed + 6, i) % 10000) - 5000);
        check_float(text, ' ');
    }
}

/* A locale with another decimal point changes nothing; it is skipped where none is installed. */
static void test_number_float_ignores_the_locale(void **state)
{
    float v;
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        print_message("no locale with a decimal comma: only \"C\" is tested\n");
    const char *p = padded("16777217.00000000000000000000001", ' ');
    const char *end = drps_number_float(p, &v);
    (void)setlocale(LC_NUMERIC, "C"); /* always there */
    assert_ptr_equal(end, p + 32);
    assert_true(v == 16777218.0f);
}

static void check_u64(const char *text)
{
    uint64_t got = 0, want;
    char *want_end;
    const char *p = padded(text, ':');
    const char *end = drps_number_u64(p, &got);
    size_t n = strspn(text, "0123456789");
    errno = 0;
    want = n ? strtoull(text, &want_end, 10) : 0;
    if (errno == ERANGE ? end == NULL : end == p + n && got == want) return;
    fail_msg("input:    '%s' (seed %llu)\nexpected: %llu\nfound:    %llu", text,
             (unsigned long long)seed, (unsigned long long)want, (unsigned long long)got);
}

static void test_number_u64(void **state)
{
    static const char *const texts[] = {"",
                                        "0",
                                        "9",
                                        "-1",
                                        "+1",
                                        "x",
                                        "1x",
                                        "00000000",
                                        "000000000000000000000000000012",
                                        "99999999",
                                        "100000000",
                                        "9999999999999999",
                                        "10000000000000000",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "18446744073709551620",
                                        "184467440737095516150",
                                        "99999999999999999999",
                                        "000018446744073709551615"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        check_u64(texts[i]);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        char text[80];
        uint64_t a = drps_rng_at(seed + 7, 2 * i), b = drps_rng_at(seed + 7, 2 * i + 1);
        (void)snprintf(text, sizeof(text), "%0*llu%s", (int)(b & 15),
                       (unsigned long long)(a >> (b >> 8 & 63)), b >> 60 ? "" : "3");
        check_u64(text);
    }
}

static void test_number_why(void **state)
{
    static const char *const rows[][2] = {{"inf", "is NaN or infinite"},
                                          {"-nan", "is NaN or infinite"},
                                          {"+Infinity", "is NaN or infinite"},
                                          {"1e39", "is too large"},
                                          {"-.5e40", "is too large"},
                                          {"", "is not a number"},
                                          {"x", "is not a number"},
                                          {"1x", "is not a number"},
                                          {".", "is not a number"},
                                          {"e5", "is not a number"}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(drps_number_why(padded(rows[i][0], ' ')), rows[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number_float_tricky),
        cmocka_unit_test(test_number_float_random),
        cmocka_unit_test(test_number_float_garbage),
        cmocka_unit_test(test_number_float_long),
        cmocka_unit_test(test_number_float_ignores_the_locale),
        cmocka_unit_test(test_number_u64),
        cmocka_unit_test(test_number_why),
    };
    return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}

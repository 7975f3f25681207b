/* Versions. */
#include "model/version_policy.h"

#include "proto/model_config.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* MR-24, MR-25, MR-26. */
static void names_of_directories(void **state)
{
    (void)state;
    static const char *const ignored[] = {"",
                                          "0",
                                          "01",
                                          "007",
                                          "v1",
                                          "tmp",
                                          "1a",
                                          "a1",
                                          "-1",
                                          "+1",
                                          " 1",
                                          "1 ",
                                          "1.0",
                                          "0x10",
                                          "1e3",
                                          "1\n",
                                          "\n1",
                                          "warmup",
                                          "9223372036854775808",
                                          "99999999999999999999999999"};
    int64_t version = -7;
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        assert_false(version_policy_parse_dir(ignored[i], &version));
    assert_int_equal(version, -7);
    assert_true(version_policy_parse_dir("1", &version) && version == 1);
    assert_true(version_policy_parse_dir("10", &version) && version == 10);
    assert_true(version_policy_parse_dir("20261121", &version) && version == 20261121);
    assert_true(version_policy_parse_dir("9223372036854775807", &version) && version == INT64_MAX);
}

/* pick - apply a policy to versions 9, 1, 10, 2 and compare. */
static void pick(const Inference__ModelVersionPolicy *policy, const int64_t *expected, size_t count,
                 int64_t missing)
{
    int64_t versions[] = {9, 1, 10, 2};
    size_t n;
    int64_t first_missing;
    version_policy_pick(policy, versions, 4, &n, &first_missing);
    assert_int_equal(n, count);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(versions[i], expected[i]);
    assert_int_equal(first_missing, missing);
}

/* MC-79, MC-81, PB-49, PB-50, PB-51, X-38. */
static void latest(void **state)
{
    (void)state;
    const int64_t sorted[] = {1, 2, 9, 10};
    pick(NULL, sorted + 3, 1, -1);
    Inference__ModelVersionPolicy policy = INFERENCE__MODEL_VERSION_POLICY__INIT;
    pick(&policy, sorted + 3, 1, -1);
    Inference__ModelVersionPolicy__Latest l = INFERENCE__MODEL_VERSION_POLICY__LATEST__INIT;
    policy.policy_choice_case = INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_LATEST;
    policy.latest = &l;
    pick(&policy, sorted + 3, 1, -1);
    l.num_versions = 2;
    pick(&policy, sorted + 2, 2, -1);
    l.num_versions = UINT32_MAX;
    pick(&policy, sorted, 4, -1);
}

/* MC-78, PB-52. */
static void all(void **state)
{
    (void)state;
    const int64_t sorted[] = {1, 2, 9, 10};
    Inference__ModelVersionPolicy__All a = INFERENCE__MODEL_VERSION_POLICY__ALL__INIT;
    Inference__ModelVersionPolicy policy = INFERENCE__MODEL_VERSION_POLICY__INIT;
    policy.policy_choice_case = INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_ALL;
    policy.all = &a;
    pick(&policy, sorted, 4, -1);
}

/* MC-80, PB-53. */
static void specific(void **state)
{
    (void)state;
    int64_t wanted[] = {10, 1, 1, 7, 5};
    const int64_t found[] = {1, 10};
    Inference__ModelVersionPolicy__Specific s = INFERENCE__MODEL_VERSION_POLICY__SPECIFIC__INIT;
    Inference__ModelVersionPolicy policy = INFERENCE__MODEL_VERSION_POLICY__INIT;
    policy.policy_choice_case = INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_SPECIFIC;
    policy.specific = &s;
    pick(&policy, NULL, 0, -1);
    s.versions = wanted;
    s.n_versions = 3;
    pick(&policy, found, 2, -1);
    s.n_versions = 5;
    pick(&policy, found, 2, 7);
}

static void no_versions(void **state)
{
    (void)state;
    size_t n = 9;
    version_policy_pick(NULL, NULL, 0, &n, NULL);
    assert_int_equal(n, 0);
    int64_t wanted[] = {3};
    Inference__ModelVersionPolicy__Specific s = INFERENCE__MODEL_VERSION_POLICY__SPECIFIC__INIT;
    s.versions = wanted;
    s.n_versions = 1;
    Inference__ModelVersionPolicy policy = INFERENCE__MODEL_VERSION_POLICY__INIT;
    policy.policy_choice_case = INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_SPECIFIC;
    policy.specific = &s;
    int64_t missing;
    version_policy_pick(&policy, NULL, 0, &n, &missing);
    assert_int_equal(n, 0);
    assert_int_equal(missing, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_directories),
        cmocka_unit_test(latest),
        cmocka_unit_test(all),
        cmocka_unit_test(specific),
        cmocka_unit_test(no_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

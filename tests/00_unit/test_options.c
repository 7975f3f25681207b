#include "server/options/options.h"

#include "base/mem.h"
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct options o;
static enum options_action action;

static int fini(void **state)
{
    (void)state;
    options_fini(&o);
    return 0;
}

static struct err *parse(const char *const *args)
{
    char *argv[32] = {(char *)(uintptr_t) "nereid"};
    int argc = 1;
    for (; args[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)args[argc - 1];
    options_fini(&o);
    options_defaults(&o);
    return options_parse(argc, argv, &o, &action);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void accepts(struct err *e)
{
    if (e)
        print_error("%s\n", err_message(e));
    assert_null(e);
}

/* The error says each of the words. */
static void refuses(struct err *e, const char *a, const char *b)
{
    assert_non_null(e);
    if (!strstr(err_message(e), a) || !strstr(err_message(e), b))
        print_error("%s\n", err_message(e));
    assert_non_null(strstr(err_message(e), a));
    assert_non_null(strstr(err_message(e), b));
    err_free(e);
}

static void defaults(void **state)
{
    (void)state;
    accepts(PARSE("--id", "x"));
    assert_string_equal(o.server_id, "x");
    assert_string_equal(o.backend_directory, "/opt/tritonserver/backends");
    assert_int_equal(o.http_port, 8000);
    assert_int_equal(o.grpc_port, 8001);
    assert_int_equal(o.metrics_port, 8002);
    assert_int_equal(o.http_max_input_bytes, 64 << 20);
    assert_int_equal(o.http_header_timeout_secs, 60);
    assert_int_equal(o.http_stall_timeout_secs, 60);
    assert_int_equal(o.http_idle_timeout_secs, 600);
    assert_int_equal(o.exit_timeout_secs, 30);
    assert_int_equal(o.model_load_threads, 4);
    assert_true(o.exit_on_error && o.strict_readiness && o.auto_complete_config);
    assert_true(o.allow_http && o.allow_grpc && o.allow_metrics);
    assert_null(o.metrics_address);
    assert_null(o.log_file);
}

static void forms_and_repetition(void **state)
{
    (void)state;
    accepts(PARSE("--http-port=1", "--http-port", "2", "--allow-grpc=OFF", "--log-verbose=true"));
    assert_int_equal(o.http_port, 2);
    assert_false(o.allow_grpc);
    assert_int_equal(o.log_verbose, 1);
    accepts(PARSE("--model-repo=/a", "--model-store", "/b", "--model-repository=/a"));
    assert_int_equal(o.repository_count, 2);
    accepts(PARSE("--backend-config=x,a=1", "--backend-config=a=2", "--backend-config=x,a=3,4"));
    assert_int_equal(o.backend_setting_count, 2);
    assert_string_equal(o.backend_settings[0].value, "3,4");
    assert_string_equal(o.backend_settings[1].backend, "");
    accepts(PARSE("--log-component=net=2", "--log-component=batching=1", "--log-component=net=3"));
    assert_int_equal(o.log_component_count, 2);
    assert_int_equal(o.log_components[0].verbose, 3);
    accepts(PARSE("--log-format=json", "--log-file=/x", "--access-log=-"));
    assert_int_equal(o.log_format, LOG_FORMAT_JSON);
    accepts(PARSE("--id=1", "--help", "--nonsense"));
    assert_int_equal(action, OPTIONS_HELP);
    accepts(PARSE("--http-cors-origin=https://[::1]:8443", "--http-cors-origin=*"));
    assert_int_equal(o.http_cors_origin_count, 2);
    assert_string_equal(o.http_cors_origins[0], "https://[::1]:8443");
    accepts(PARSE("--version"));
    assert_int_equal(action, OPTIONS_VERSION);
}

static void wrong_values_name_what_is_allowed(void **state)
{
    (void)state;
    refuses(PARSE("--http-port=65536"), "--http-port: expected a number from 0 to 65535",
            "'65536'");
    refuses(PARSE("--http-port=-1"), "--http-port", "'-1'");
    refuses(PARSE("--http-port="), "--http-port", "''");
    refuses(PARSE("--http-max-input-size=0"), "from 1 to", "'0'");
    refuses(PARSE("--http-header-timeout-secs=0"), "from 1 to 86400", "'0'");
    refuses(PARSE("--http-stall-timeout-secs=86401"), "from 1 to 86400", "'86401'");
    refuses(PARSE("--http-idle-timeout-secs=1.5"), "from 1 to 86400", "'1.5'");
    refuses(PARSE("--http-cors-origin=https://App.example"), "small letters", "App");
    refuses(PARSE("--http-cors-origin=https://app.example/"), "without a slash", "'https");
    refuses(PARSE("--http-cors-origin=app.example"), "--http-cors-origin", "'app.example'");
    refuses(PARSE("--http-cors-origin=https://a\r\nSet-Cookie: b"), "--http-cors-origin", "");
    refuses(PARSE("--http-cors-origin=null"), "--http-cors-origin", "'null'");
    refuses(PARSE("--allow-http=maybe"), "--allow-http: expected true or false", "'maybe'");
    refuses(PARSE("--log-format=xml"), "default, ISO8601 or json", "'xml'");
    refuses(PARSE("--log-verbose=x"), "--log-verbose", "'x'");
    refuses(PARSE("--log-component=nett=1"), "metrics, model, net", "'nett=1'");
    refuses(PARSE("--log-component=net"), "<component>=<level>", "'net'");
    refuses(PARSE("--log-file="), "--log-file", "a path");
    refuses(PARSE("--backend-config=x"), "<key>=<value>", "'x'");
    refuses(PARSE("--http-port"), "--http-port needs a value", "<port>");
    refuses(PARSE("--disable-auto-complete-config=true"), "takes no value", "'true'");
    refuses(PARSE("model"), "unexpected argument 'model'", "--help");
}

static void unknown_names(void **state)
{
    (void)state;
    refuses(PARSE("--htpp-port=1"), "unknown option '--htpp-port=1'", "did you mean --http-port?");
    refuses(PARSE("--http_port=1"), "unknown", "--http-port?");
    refuses(PARSE("--strict-readyness=1"), "unknown", "--strict-readiness?");
    refuses(PARSE("--grpc=1"), "more than one option begins so", "--grpc-");
    struct err *e = PARSE("--zebra=1");
    assert_null(strstr(err_message(e), "did you mean"));
    err_free(e);
}

/* Values with which something is off, as it is. */
static void what_happens_anyway(void **state)
{
    (void)state;
    accepts(PARSE("--grpc-use-ssl=no", "--rate-limit", "OFF", "--enable-peer-access=1",
                  "--http-thread-count=8", "--trace-config=level=off", "--trace-count=-1"));
    assert_int_equal(o.warning_count, 3);
    assert_string_equal(o.warnings[2],
                        "'--trace-count' has been deprecated! Use --trace-config count=COUNT.");
}

/* --trace-config wins over the deprecated options, whichever comes first; OFF over other levels. */
static void traces(void **state)
{
    (void)state;
    accepts(PARSE("--trace-config=rate=7", "--trace-rate=5", "--trace-count=3",
                  "--trace-config=level=timestamps", "--trace-level=TENSORS",
                  "--trace-config=TRITON,file=/x", "--trace-config", "mode=OpenTelemetry",
                  "--trace-config=opentelemetry,resource=a=b=c",
                  "--trace-config=opentelemetry,bsp_max_queue_size=9"));
    assert_int_equal(o.trace.rate, 7);
    assert_int_equal(o.trace.count, 3);
    assert_int_equal(o.trace.frequency, 0);
    assert_int_equal(o.trace.level, 4 | 8);
    assert_false(o.trace.off);
    assert_string_equal(o.trace.file, "/x");
    assert_true(o.trace.opentelemetry);
    assert_int_equal(o.trace.setting_count, 2);
    assert_string_equal(o.trace.settings[0].value, "a=b=c");
    accepts(PARSE("--trace-level=off"));
    assert_true(o.trace.off);
    refuses(PARSE("--trace-config=rate"), "--trace-config", "[<mode>,]<setting>=<value>");
    refuses(PARSE("--trace-config=,rate=1"), "triton or opentelemetry", "',rate=1'");
    refuses(PARSE("--trace-config=zipkin,url=x"), "triton or opentelemetry", "zipkin");
    refuses(PARSE("--trace-config=mode=zipkin"), "triton or opentelemetry", "'zipkin'");
    refuses(PARSE("--trace-config=rate=-1"), "0 to 2147483647", "'-1'");
    refuses(PARSE("--trace-config=count=-2"), "-1 to 2147483647", "'-2'");
    refuses(PARSE("--trace-config=level=some"), "TIMESTAMPS", "'some'");
    refuses(PARSE("--trace-config=speed=1"), "level, rate, count or mode", "'speed'");
    refuses(PARSE("--trace-config=triton,speed=1"), "triton,log-frequency", "'speed'");
    refuses(PARSE("--trace-config=opentelemetry,file=x"), "opentelemetry,url", "'file'");
    refuses(PARSE("--trace-config=opentelemetry,url=x"), "http://", "'x'");
    refuses(PARSE("--trace-config=opentelemetry,resource=x"), "<key>=<value>", "'x'");
    refuses(PARSE("--trace-config=opentelemetry,bsp_schedule_delay=x"), "2147483647", "'x'");
}

/* What only tunes is taken with any value of its form, and told of once. */
static void without_effect(void **state)
{
    (void)state;
    accepts(PARSE("--http-thread-count=32", "--http-thread-count=16",
                  "--cuda-virtual-address-size=0:1024", "--sagemaker-thread-count=9",
                  "--enable-peer-access=TRUE"));
    assert_int_equal(o.warning_count, 4);
    assert_string_equal(
        o.warnings[0],
        "option --http-thread-count does nothing here: Threads of the HTTP front end; "
        "--loop-threads sets those of this server.");
    accepts(PARSE("--client-shm-byte-size=9", "--openai-port=9001", "--sagemaker-port=9002",
                  "--trace-config=opentelemetry,url=http://x/", "--trace-config=level=TIMESTAMPS"));
    assert_int_equal(o.warning_count, 5);
    assert_string_equal(
        o.warnings[0],
        "option --client-shm-byte-size: does nothing without --allow-client-shm=true");
    accepts(PARSE("--client-shm-byte-size=9", "--allow-client-shm=true", "--openai-port=9001",
                  "--allow-openai=true", "--trace-config=level=TIMESTAMPS",
                  "--trace-config=triton,file=/x"));
    assert_int_equal(o.warning_count, 0);
    refuses(PARSE("--http-thread-count=many"), "--http-thread-count: expected <integer>", "'many'");
    refuses(PARSE("--http-thread-count=8x"), "--http-thread-count", "'8x'");
    accepts(PARSE("--http-address=[::1]", "--grpc-address=::"));
    assert_string_equal(o.http_address, "::1");
    assert_string_equal(o.grpc_address, "::");
    refuses(PARSE("--enable-peer-access=2"), "--enable-peer-access", "true or false");
}

static void gpus(void **state)
{
    (void)state;
    accepts(PARSE("--http-port=1"));
    assert_int_equal(o.gpus.pinned_bytes, 268435456);
    assert_true(o.gpus.least_capability == 6.0);
    accepts(PARSE("--cuda-memory-pool-byte-size=0:1024", "--cuda-memory-pool-byte-size", "1:2048",
                  "--cuda-memory-pool-byte-size=0:0", "--model-load-gpu-limit=0:0.5",
                  "--model-load-gpu-limit=300:1", "--min-supported-compute-capability=5.3",
                  "--pinned-memory-pool-byte-size=0"));
    assert_int_equal(o.gpus.pool_count, 2);
    assert_int_equal(o.gpus.pools[0].device, 0);
    assert_int_equal(o.gpus.pools[0].bytes, 0); /* the later counts */
    assert_int_equal(o.gpus.pools[1].bytes, 2048);
    assert_int_equal(o.gpus.limit_count, 2);
    assert_true(o.gpus.limits[0].fraction == 0.5);
    assert_true(o.gpus.least_capability == 5.3);
    assert_int_equal(o.gpus.pinned_bytes, 0);
    refuses(PARSE("--cuda-memory-pool-byte-size=1024"), "expected <gpu>:<bytes>", "'1024'");
    refuses(PARSE("--cuda-memory-pool-byte-size=-1:1"), "expected <gpu>:<bytes>", "'-1:1'");
    refuses(PARSE("--cuda-memory-pool-byte-size=0:-1"), "expected <gpu>:<bytes>", "'0:-1'");
    refuses(PARSE("--model-load-gpu-limit=0:1.5"), "from 0 to 1", "'0:1.5'");
    refuses(PARSE("--model-load-gpu-limit=0"), "from 0 to 1", "'0'");
    refuses(PARSE("--min-supported-compute-capability=high"), "expected <number>", "'high'");
    refuses(PARSE("--pinned-memory-pool-byte-size=-1"), "--pinned-memory-pool-byte-size", "'-1'");
}

/* The services of clouds tell a container in its environment what to do; options win. */
static void clouds(void **state)
{
    (void)state;
    accepts(PARSE("--allow-sagemaker=1", "--sagemaker-safe-port-range=9000-9100"));
    assert_int_equal(o.sagemaker.port, 8080);
    assert_int_equal(o.sagemaker.others.first, 9000);
    assert_int_equal(o.sagemaker.others.last, 9100);
    assert_string_equal(o.sagemaker.inference, "infer");
    const char *const bad[] = {"9000", "9100-9000", "-1", "1-", "1-65536", "1-2-3", "a-b", ""};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char text[64];
        snprintf(text, sizeof(text), "--sagemaker-safe-port-range=%s", bad[i]);
        refuses(PARSE(text), "--sagemaker-safe-port-range: expected <first>-<last>", bad[i]);
    }
    refuses(PARSE("--allow-vertex-ai=1"), "AIP_PREDICT_ROUTE: expected the path", "''");
    setenv("AIP_MODE", "PREDICTION", 1);
    setenv("AIP_HTTP_PORT", "8085", 1);
    setenv("AIP_PREDICT_ROUTE", "/predict", 1);
    setenv("AIP_HEALTH_ROUTE", "/health", 1);
    setenv("AIP_STORAGE_URI", "/from-vertex", 1);
    setenv("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "m", 1);
    accepts(PARSE("--id=x"));
    assert_true(o.vertex.allow);
    assert_false(o.allow_http || o.allow_grpc);
    assert_int_equal(o.vertex.port, 8085);
    assert_string_equal(o.vertex.predict, "/predict");
    assert_string_equal(o.repositories[0], "/from-vertex");
    assert_string_equal(o.sagemaker.model, "m");
    accepts(
        PARSE("--allow-http=1", "--allow-vertex-ai=0", "--vertex-ai-port=1", "--model-store=/m"));
    assert_true(o.allow_http);
    assert_false(o.vertex.allow);
    assert_int_equal(o.vertex.port, 1);
    assert_int_equal(o.repository_count, 1);
    setenv("AIP_HEALTH_ROUTE", "health", 1);
    refuses(PARSE("--id=x"), "AIP_HEALTH_ROUTE", "'health'");
    setenv("AIP_HTTP_PORT", "70000", 1);
    refuses(PARSE("--id=x"), "AIP_HTTP_PORT: expected a port", "'70000'");
    setenv("AIP_HTTP_PORT", "", 1);
    setenv("AIP_MODE", "", 1);
    setenv("SAGEMAKER_TRITON_INFERENCE_TYPE", "guess", 1);
    refuses(PARSE("--allow-sagemaker=1"), "SAGEMAKER_TRITON_INFERENCE_TYPE", "'guess'");
    accepts(PARSE("--id=x"));
    static const char *const names[] = {"AIP_MODE",
                                        "AIP_HTTP_PORT",
                                        "AIP_PREDICT_ROUTE",
                                        "AIP_HEALTH_ROUTE",
                                        "AIP_STORAGE_URI",
                                        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME",
                                        "SAGEMAKER_TRITON_INFERENCE_TYPE"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unsetenv(names[i]);
}

static void words_in_capitals(void **state)
{
    (void)state;
    accepts(PARSE("--model-control-mode=EXPLICIT", "--grpc-infer-response-compression-level=High",
                  "--rate-limit=Execution_Count", "--log-format=iso8601", "--log-verbose=TRUE",
                  "--allow-http=ON"));
    assert_int_equal(o.control_mode, OPTIONS_CONTROL_EXPLICIT);
    assert_int_equal(o.grpc_compression, OPTIONS_COMPRESSION_HIGH);
    assert_int_equal(o.log_format, LOG_FORMAT_ISO8601);
    assert_int_equal(o.log_verbose, 1);
}

/* Blanks, and what cannot be read: it is left out with a warning, as in the reference. */
static void quantiles(void **state)
{
    (void)state;
    accepts(PARSE("--metrics-config=summary_quantiles= 0.5:0.05, 0.9 : 0.01,0.99:0.001x"));
    assert_int_equal(o.latencies.quantile_count, 3);
    assert_int_equal(o.warning_count, 0);
    accepts(PARSE("--metrics-config=summary_quantiles=0.5,0.9:0.01,x:1,1:,2:0.1,:,0.99:7,"));
    assert_int_equal(o.latencies.quantile_count, 2);
    assert_true(o.latencies.quantiles[0] > 0.89 && o.latencies.quantiles[1] > 0.98);
    assert_int_equal(o.warning_count, 5);
    assert_non_null(strstr(o.warnings[0], "summary_quantiles: '0.5' is left out"));
    accepts(PARSE("--metrics-config=summary_quantiles=0.25:0.1",
                  "--metrics-config=summary_quantiles=none"));
    assert_int_equal(o.latencies.quantile_count, 1);
}

/* The switch wins over the deprecated option, whichever comes first. */
static void auto_complete(void **state)
{
    (void)state;
    accepts(PARSE("--strict-model-config=true"));
    assert_false(o.auto_complete_config);
    assert_non_null(strstr(o.warnings[0], "'--strict-model-config' has been deprecated! "));
    accepts(PARSE("--strict-model-config=true", "--strict-model-config=false"));
    assert_true(o.auto_complete_config);
    accepts(PARSE("--disable-auto-complete-config", "--strict-model-config=false"));
    assert_false(o.auto_complete_config);
}

static char path[64];

static struct err *parse_file(const char *text, const char *more)
{
    snprintf(path, sizeof(path), "/tmp/nereid-options-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    struct err *e = more ? PARSE(more, "--config", path) : PARSE("--config", path);
    unlink(path);
    return e;
}

static void files(void **state)
{
    (void)state;
    accepts(parse_file("# comment\n\n  http-port = 81 \r\nid=a = b # c\nmodel-repository = /m\n"
                       "model-repository=/n\ndisable-auto-complete-config = true",
                       NULL));
    assert_int_equal(o.http_port, 81);
    assert_string_equal(o.server_id, "a = b # c");
    assert_int_equal(o.repository_count, 2);
    assert_string_equal(o.repositories[1], "/n");
    assert_false(o.auto_complete_config);
    accepts(parse_file("http-port = 81\nid = x\n", "--http-port=82"));
    assert_int_equal(o.http_port, 82);
    assert_string_equal(o.server_id, "x");
    accepts(parse_file("model-repository = /m\n", "--model-repository=/c"));
    assert_int_equal(o.repository_count, 1);
    assert_string_equal(o.repositories[0], "/c");
    accepts(
        parse_file("http-restricted-api = health,trace:a=x\n", "--http-restricted-api=health:b=y"));
    assert_string_equal(o.http_restrictions.of[OPTIONS_CATEGORY_HEALTH].header, "b");
    assert_string_equal(o.http_restrictions.of[OPTIONS_CATEGORY_TRACE].header, "a");
    accepts(parse_file("trace-config = level=OFF\n", "--trace-config=level=TIMESTAMPS"));
    assert_false(o.trace.off);
    assert_int_equal(o.trace.level, 4);
    accepts(parse_file("trace-config = level=TENSORS\ntrace-config = rate=7\n", "--trace-rate=3"));
    assert_int_equal(o.trace.level, 8);
    assert_int_equal(o.trace.rate, 3);
    refuses(
        parse_file("grpc-restricted-protocol = health:a=x\ngrpc-restricted-protocol = health:a=x\n",
                   NULL),
        ":2: option --grpc-restricted-protocol", "twice");
    refuses(parse_file("id = x\nhttp-port = many\n", NULL), ":2: option --http-port", "'many'");
    refuses(parse_file("\nhttp-prt = 1\n", NULL), ":2: unknown option 'http-prt'", "'http-port'");
    refuses(parse_file("http-port 81\n", NULL), ":1: expected 'name = value'", "http-port 81");
    refuses(parse_file("config = /x\n", NULL), ":1:", "config");
    refuses(parse_file("allow-gpu-metrics = x\n", NULL), ":1:", "'x'");
    refuses(PARSE("--config=/nowhere/at/all"), "--config", "/nowhere/at/all");
}

static void help_names_every_option(void **state)
{
    (void)state;
    char *help = options_help();
    assert_non_null(strstr(help, "\n  --http-port <port>\n"));
    assert_non_null(strstr(help, "Default: 8000."));
    assert_non_null(strstr(help, "\n  --model-load-gpu-limit <gpu>:<fraction>\n"));
    assert_non_null(strstr(help, "\n  --version\n"));
    mem_free(help);
}

UNIT_MAIN(cmocka_unit_test_teardown(defaults, fini),
          cmocka_unit_test_teardown(forms_and_repetition, fini),
          cmocka_unit_test_teardown(wrong_values_name_what_is_allowed, fini),
          cmocka_unit_test_teardown(unknown_names, fini),
          cmocka_unit_test_teardown(what_happens_anyway, fini),
          cmocka_unit_test_teardown(traces, fini), cmocka_unit_test_teardown(without_effect, fini),
          cmocka_unit_test_teardown(gpus, fini), cmocka_unit_test_teardown(clouds, fini),
          cmocka_unit_test_teardown(words_in_capitals, fini),
          cmocka_unit_test_teardown(quantiles, fini),
          cmocka_unit_test_teardown(auto_complete, fini), cmocka_unit_test_teardown(files, fini),
          cmocka_unit_test(help_names_every_option))

-- The load of wrk: one request from the environment, a line of JSON at the end.
local function read(name)
    local file = assert(io.open(os.getenv(name), "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

wrk.method = "POST"
wrk.body = read("BENCH_BODY")
for name, value in string.gmatch(read("BENCH_HEADERS"), "([^\n:]+): ([^\n]+)\n") do
    wrk.headers[name] = value
end

function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format(
        '\nRESULT {"requests":%d,"bytes":%.0f,"seconds":%.6f,"p50_us":%.1f,"p99_us":%.1f,"errors":%d}\n',
        summary.requests, summary.bytes, summary.duration / 1e6,
        latency:percentile(50), latency:percentile(99),
        errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end

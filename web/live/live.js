// The live page: asks the server what its models do, and shows it. Text from the server is only ever set as text.
import { Chart, duration, element, short } from "./charts.js";
import { makeForm } from "./try.js";

const PERIOD_MS = 2000, LIMIT_MS = 10000, LOADING_LIMIT_MS = 600000, KEPT = 150, ROW = 34, SPARE = 8;
const byId = (id) => document.getElementById(id);
const say = (text) => { byId("said").textContent = text; };

// ---- asking the server

const keys = {
  get: (name) => { try { return sessionStorage.getItem(name) || ""; } catch { return ""; } },
  set: (name, value) => { try { sessionStorage.setItem(name, value); } catch { /* the tab keeps nothing */ } },
};
// What `read` makes of an answer. Who gives a signal ends the question with it; all others have to be answered in time.
const ask = async (path, { signal = AbortSignal.timeout(LIMIT_MS), ...options } = {}, read = (reply) => reply) => {
  const headers = new Headers(options.headers), key = keys.get("key"), name = keys.get("header-name");
  try {
    if (key) headers.set("X-API-Key", key);
    if (name) headers.set(name, keys.get("header-value"));
  } catch {
    throw Object.assign(new Error("The key, or the header given with it, has characters that no header can have"), { status: 401 });
  }
  let reply, text;
  try {
    reply = await fetch(path, { ...options, signal, headers, cache: "no-store", credentials: "omit", redirect: "error" });
    if (reply.ok) return await read(reply);
    text = await reply.text();
  } catch (error) {
    const why = signal.reason || error;
    throw why.name === "AbortError" ? why : new Error(`The server ${why.name === "TimeoutError" ? "does not answer" : "cannot be reached"}`);
  }
  let why = text;
  try { why = JSON.parse(text).error || text; } catch { /* it is no JSON */ }
  throw Object.assign(new Error(why || `the server answered ${reply.status}`), { status: reply.status });
};
const askJson = (path, options) => ask(path, options, (reply) => reply.json());

// A path as the server reads it: as sent. What a browser would write another way cannot be asked.
const askable = (path) => {
  try { return new URL(path, location.origin).pathname === path; } catch { return false; }
};

// ---- what is known

const known = { index: new Map(), live: new Map(), rates: new Map(), control: "", generation: null, errors: 0, started: 0, ready: false };
const keyOf = (name, version) => `${version}\n${name}`;
let scope = ""; // the model whose latencies are drawn; "" = all
let chosen = null; // {name, version}
let previous = null, previousLatencies = null, indexDue = true, indexAllowed = true, errorsDue = false, errorsAllowed = true;
let keysTurn = 0; // grows with each other key: what the one before may not see says nothing about this one

const difference = (now, before, at) => {
  const was = before && before[at] || 0, is = now[at] || 0;
  return is >= was ? is - was : is; // the model was loaded again
};
const names = ["instances", "busy", "pending", "success", "failed", "inferences", "executions", "request_us", "queue_us"];
const at = Object.fromEntries(names.map((name, index) => [name, index]));
const ratesOf = (now, before, seconds) => {
  const grown = (name) => difference(now, before, at[name]);
  const success = grown("success"), executions = grown("executions");
  return {
    instances: now[at.instances], busy: now[at.busy], pending: now[at.pending], total: now[at.success] || 0, failures: now[at.failed] || 0,
    rate: success / seconds, failed: grown("failed") / seconds,
    mean: success ? grown("request_us") / success : null, batch: executions ? grown("inferences") / executions : null,
  };
};

// The duration that a part of the calls since the last look did not exceed.
const percentiles = (buckets, before, parts) => {
  const grown = buckets.map(([upper, count]) => [upper, count - (before.get(upper) || 0)]).filter(([, count]) => count > 0);
  const total = grown.reduce((sum, [, count]) => sum + count, 0);
  return parts.map((part) => {
    let left = Math.ceil(part * total);
    for (const [upper, count] of grown) if ((left -= count) <= 0) return upper;
    return null;
  });
};

// ---- now

const charts = [], history = { time: [], series: {} };
const plots = [
  { title: "Requests a second", series: ["answered", "failed"], from: ["rate", "failed"], say: short },
  { title: "Latency", series: ["half", "95 %", "99 %"], from: ["p50", "p95", "p99"], say: duration, least: 1000 },
  { title: "Batch size, mean", series: ["rows"], from: ["batch"], say: short },
  { title: "Queue", series: ["waiting", "instances at work"], from: ["pending", "busy"], say: short },
];
const makeCharts = () => {
  for (const plot of plots) {
    charts.push(new Chart(byId("charts"), plot.title, plot.series, plot.say, plot.least));
    for (const name of plot.from) history.series[name] = [];
  }
};
const forget = () => {
  history.time.length = 0;
  for (const each of Object.values(history.series)) each.length = 0;
  previousLatencies = null;
};
const draw = () => plots.forEach((plot, index) => charts[index].draw([history.time, ...plot.from.map((name) => history.series[name])]));
const tile = {};
const showTile = (name, text) => {
  if (!tile[name]) {
    const box = element("div", null, byId("tiles"));
    element("dt", name, box);
    tile[name] = element("dd", "", box);
  }
  if (tile[name].textContent !== text) tile[name].textContent = text;
};

const record = (numbers, rates) => {
  const before = previousLatencies;
  previousLatencies = new Map(numbers.latency_us);
  const [p50, p95, p99] = before ? percentiles(numbers.latency_us, before, [0.5, 0.95, 0.99]) : [null, null, null];
  const points = { ...rates, p50, p95, p99 };
  if (before) {
    history.time.push(numbers.now_ms / 1000);
    for (const [name, values] of Object.entries(history.series)) values.push(points[name] === undefined ? null : points[name]);
    if (history.time.length > KEPT) {
      history.time.shift();
      for (const values of Object.values(history.series)) values.shift();
    }
    draw();
  }
  showTile("Requests/s", short(rates.rate));
  showTile("Failed/s", short(rates.failed));
  showTile("Latency, half", duration(p50));
  showTile("Latency, 99 %", duration(p99));
  showTile("Batch size", short(rates.batch));
  showTile("Waiting", short(rates.pending));
  showTile("Busy instances", rates.instances === undefined ? "–" : `${rates.busy} of ${rates.instances}`);
  showTile("Answered", short(rates.total));
  showTile("Failed", short(rates.failures));
};

// Those of the model that is looked at, all its versions together; null if none is served.
const sumOf = (versions, name) => {
  const own = versions.filter(([title]) => title === name);
  return own.length ? names.map((_, index) => own.reduce((sum, counts) => sum + (counts[index + 2] || 0), 0)) : null;
};

const take = (numbers) => {
  if (known.started !== numbers.started_ms) { // another run of the server, which counts from the beginning
    Object.assign(known, { started: numbers.started_ms, live: new Map(), generation: null, errors: 0 });
    previous = previousLatencies = null;
    showErrors([]);
  }
  const seconds = previous ? Math.max(0.05, (numbers.now_ms - previous.now_ms) / 1000) : Infinity;
  const live = new Map(), rates = new Map();
  for (const [name, version, ...counts] of numbers.versions) {
    const key = keyOf(name, version);
    live.set(key, { name, version: String(version), counts });
    rates.set(key, ratesOf(counts, known.live.has(key) ? known.live.get(key).counts : null, known.live.has(key) ? seconds : Infinity));
  }
  const sum = scope ? sumOf(numbers.versions, scope) : numbers.total;
  const before = previous && (scope ? sumOf(previous.versions, scope) : previous.total);
  record(numbers, sum ? ratesOf(sum, before, seconds) : {});
  known.live = live;
  known.rates = rates;
  if (known.generation !== numbers.generation) indexDue = true;
  if (known.errors !== numbers.errors) errorsDue = true;
  known.errors = numbers.errors;
  known.generation = numbers.generation;
  if (known.control !== numbers.control) {
    known.control = numbers.control;
    if (chosen) showActions();
  }
  previous = numbers;
  byId("left-out").hidden = !numbers.left_out;
  byId("left-out").textContent = `The numbers of ${numbers.left_out} more versions are left out; the totals have them.`;
  known.ready = numbers.ready;
};
const showState = (state, text) => {
  byId("state").dataset.state = state;
  if (byId("state-text").textContent !== text) byId("state-text").textContent = text;
};

// ---- the table: only the rows that can be seen are there

const columns = [
  { title: "Model", text: true, sort: (row) => row.name.toLowerCase() },
  { title: "Version", sort: (row) => Number(row.version) || 0, cell: (row) => row.version || "–" },
  { title: "State", text: true, sort: (row) => row.state, cell: (row) => row.state ? row.state.toLowerCase() : "not loaded", mark: (row) => row.state },
  { title: "Instances", sort: (row) => row.rates ? row.rates.instances : -1, cell: (row) => row.rates ? `${row.rates.instances}` : "–" },
  { title: "Requests/s", sort: (row) => row.rates ? row.rates.rate : -1, cell: (row) => row.rates ? short(row.rates.rate) : "–" },
  { title: "Latency", sort: (row) => row.rates && row.rates.mean || 0, cell: (row) => row.rates ? duration(row.rates.mean) : "–" },
  { title: "Batch", sort: (row) => row.rates && row.rates.batch || 0, cell: (row) => row.rates ? short(row.rates.batch) : "–" },
  { title: "Waiting", sort: (row) => row.rates ? row.rates.pending : -1, cell: (row) => row.rates ? short(row.rates.pending) : "–" },
  { title: "Failed", sort: (row) => row.rates ? row.rates.failures : -1, cell: (row) => row.rates ? short(row.rates.failures) : "–" },
  { title: "Reason", text: true, sort: (row) => row.reason, cell: (row) => row.reason },
];
const order = { column: 0, down: false };
let rows = [];
const shownRows = new Map(); // key -> {line, cells, button}

const mergeRows = () => {
  const all = new Map();
  const titles = [...known.live.values()].map((each) => each.name);
  const spaced = new Set(titles.filter((title) => title.includes("::")).map((title) => title.slice(title.lastIndexOf("::") + 2)));
  for (const [key, each] of known.index) {
    if (each.state === "READY" && !known.live.has(key) && spaced.has(each.name)) continue; // told under the name of its repository
    all.set(key, { key, name: each.name, version: each.version || "", state: each.state || "", reason: each.reason || "", rates: known.rates.get(key) || null });
  }
  for (const [key, each] of known.live)
    if (!all.has(key)) all.set(key, { key, name: each.name, version: each.version, state: "READY", reason: "", rates: known.rates.get(key) });
  return [...all.values()];
};

const arrange = () => {
  const wanted = byId("filter").value.trim().toLowerCase(), state = byId("show").value, all = mergeRows();
  rows = all.filter((row) => (!wanted || row.name.toLowerCase().includes(wanted)) && (!state || row.state === state));
  const { sort } = columns[order.column], sign = order.down ? -1 : 1;
  rows = rows.map((row) => [sort(row), row]).sort(([a, x], [b, y]) => (a < b ? -sign : a > b ? sign : x.name < y.name ? -1 : x.name > y.name ? 1 : Number(x.version) - Number(y.version))).map(([, row]) => row);
  const count = rows.length === all.length ? `${all.length}` : `${rows.length} of ${all.length}`;
  if (byId("model-count").textContent !== count) byId("model-count").textContent = count;
  byId("models").setAttribute("aria-rowcount", String(rows.length + 1));
  paintRows();
};

const makeHeads = () => {
  columns.forEach((column, index) => {
    const head = element("th", null, byId("heads"), column.text ? "text" : "");
    head.scope = "col";
    const button = element("button", column.title, head);
    button.type = "button";
    button.addEventListener("click", () => {
      order.down = order.column === index ? !order.down : !column.text;
      order.column = index;
      markHeads();
      arrange();
    });
  });
  markHeads();
};
const markHeads = () => {
  [...byId("heads").children].forEach((head, index) => {
    if (index === order.column) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
    head.firstChild.textContent = columns[index].title + (index === order.column ? (order.down ? " ▾" : " ▴") : "");
  });
};

const gaps = { above: null, below: null };
const makeGap = () => {
  const line = document.createElement("tr"), cell = element("td", null, line);
  line.className = "gap";
  line.setAttribute("aria-hidden", "true");
  cell.colSpan = columns.length;
  return line;
};
const makeRow = (row) => {
  const line = document.createElement("tr"), head = element("th", null, line, "text");
  head.scope = "row";
  const button = element("button", row.name, head);
  button.type = "button";
  button.title = row.name;
  button.addEventListener("click", () => choose(row.name, row.version, true));
  const cells = columns.slice(1).map((column) => element("td", "", line, column.text ? "text" : ""));
  return { line, button, cells };
};
const fillRow = (made, row, index) => {
  made.line.setAttribute("aria-rowindex", String(index + 2));
  made.line.dataset.index = String(index);
  if (chosen && chosen.name === row.name && chosen.version === row.version) made.line.setAttribute("aria-current", "true");
  else made.line.removeAttribute("aria-current");
  columns.slice(1).forEach((column, place) => {
    const cell = made.cells[place], text = column.cell(row);
    if (cell.textContent !== text) {
      cell.textContent = text;
      if (column.text) cell.title = text;
    }
    if (column.mark) cell.className = `text ${column.mark(row)}`;
  });
};
const paintRows = () => {
  const scroll = byId("scroll"), body = byId("rows");
  if (!gaps.above) {
    gaps.above = makeGap();
    gaps.below = makeGap();
    body.append(gaps.above, gaps.below);
  }
  const first = Math.max(0, Math.floor(scroll.scrollTop / ROW) - SPARE), last = Math.min(rows.length, Math.ceil((scroll.scrollTop + scroll.clientHeight) / ROW) + SPARE);
  const wanted = new Set(rows.slice(first, last).map((row) => row.key));
  for (const [key, made] of shownRows) {
    if (wanted.has(key)) continue;
    if (made.line.contains(document.activeElement)) scroll.focus({ preventScroll: true });
    made.line.remove();
    shownRows.delete(key);
  }
  gaps.above.firstChild.style.height = `${first * ROW}px`;
  gaps.below.firstChild.style.height = `${(rows.length - last) * ROW}px`;
  let behind = gaps.above;
  for (let index = first; index < last; index++) {
    const row = rows[index];
    if (!shownRows.has(row.key)) shownRows.set(row.key, makeRow(row));
    const made = shownRows.get(row.key);
    fillRow(made, row, index);
    if (behind.nextSibling !== made.line) behind.after(made.line);
    behind = made.line;
  }
};
// Up and down go from model to model.
const step = (event) => {
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key], line = event.target.closest("tr[data-index]");
  if (!way || !line) return;
  event.preventDefault();
  const next = Number(line.dataset.index) + way, row = rows[next];
  if (!row) return;
  const scroll = byId("scroll"), top = next * ROW;
  if (top < scroll.scrollTop) scroll.scrollTop = top;
  else if (top + 3 * ROW > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + 3 * ROW - scroll.clientHeight;
  paintRows();
  shownRows.get(row.key).button.focus({ preventScroll: true });
};

// ---- one model

const pathOf = (name, version) => `/v2/models/${name}${version ? `/versions/${version}` : ""}`;
const stateOf = (name, version) => {
  const key = keyOf(name, version), told = known.index.get(key);
  return told ? told.state || "" : known.live.has(key) ? "READY" : "";
};
const fact = (list, name, text) => {
  element("dt", name, list);
  element("dd", text, list);
};

const setScope = (name) => {
  if (scope === name) return;
  scope = name;
  forget();
  previous = null;
  byId("scope").textContent = name ? `of ${name}` : "";
  byId("all-models").hidden = !name;
};

let actions = null;
const showActions = () => {
  if (!actions) return;
  actions.replaceChildren();
  const { name, version } = chosen, ready = stateOf(name, version) === "READY", explicit = known.control === "explicit";
  const button = (text, what) => {
    const made = element("button", text, actions);
    made.type = "button";
    made.disabled = !explicit;
    made.addEventListener("click", () => what(name, made));
    return made;
  };
  button(ready ? "Reload" : "Load", load);
  if (ready) button("Unload", unload);
  if (!explicit) element("span", "Loading and unloading want --model-control-mode=explicit.", actions, "hint");
};
const control = async (name, what, doing, done, button) => {
  const path = `/v2/repository/models/${name}/${what}`;
  if (!askable(path)) return problem(`a browser cannot ask for a model of the name “${name}”`);
  button.disabled = true;
  say(`${doing} ${name}`);
  try {
    await ask(path, { method: "POST", body: "{}", signal: AbortSignal.timeout(LOADING_LIMIT_MS) });
    problem("");
    say(`${name} is ${done}`);
  } catch (error) {
    problem(`${doing} “${name}” failed: ${error.message}`);
  }
  await lookAgain().catch(() => {}); // poll() says it
  const version = chosen && chosen.name === name && !known.index.has(keyOf(name, chosen.version)) ? latestOf(name) : chosen && chosen.version;
  if (chosen && chosen.name === name) choose(name, version, false);
};
const latestOf = (name) => {
  const versions = [...known.index.values()].filter((each) => each.name === name).map((each) => each.version || "");
  return versions.length ? versions[versions.length - 1] : "";
};
const load = (name, button) => control(name, "load", "Loading", "loaded", button);
const unload = (name, button) => {
  const dialog = byId("confirm-dialog");
  byId("confirm-title").textContent = `Unload ${name}?`;
  byId("confirm-text").textContent = "Requests that are under way are answered; later ones are refused until it is loaded again.";
  dialog.returnValue = "";
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "yes") control(name, "unload", "Unloading", "unloaded", button);
    else button.focus();
  }, { once: true });
  dialog.showModal();
};

const showConfig = (config, body) => {
  const list = element("dl", null, body);
  list.id = "facts";
  fact(list, "Backend", config.backend || config.platform || "–");
  fact(list, "Batches", config.max_batch_size > 0 ? `up to ${config.max_batch_size} rows${config.dynamic_batching ? `, put together by the server within ${duration(Number(config.dynamic_batching.max_queue_delay_microseconds || 0))}` : ""}` : "none");
  const groups = (config.instance_group || []).map((each) => `${each.count} on ${String(each.kind).replace("KIND_", "")}`);
  if (groups.length) fact(list, "Instances", groups.join(", "));
  if (config.ensemble_scheduling) fact(list, "Ensemble of", (config.ensemble_scheduling.step || []).map((each) => each.model_name).join(", "));
  const more = element("details", null, body);
  element("summary", "Configuration in force", more);
  element("pre", JSON.stringify(config, null, 2), more).tabIndex = 0;
};

// The model that is looked at was loaded or unloaded meanwhile, by whomever.
const lookAtChosen = () => {
  if (!chosen) return;
  const { name, version } = chosen, key = keyOf(name, version);
  const now = known.index.has(key) || known.live.has(key) ? version : latestOf(name);
  if (now !== version || stateOf(name, now) !== shownState) choose(name, now, false);
};

let choices = 0, shownState = "", leaving = new AbortController();
const choose = async (name, version, focus) => {
  const mine = ++choices, body = byId("detail-body");
  const inside = body.contains(document.activeElement); // the focus would be lost with what it is on
  chosen = { name, version };
  leaving.abort();
  leaving = new AbortController();
  shownState = stateOf(name, version);
  setScope(name);
  paintRows();
  byId("detail-title").textContent = version ? `${name}, version ${version}` : name;
  if (focus || inside) byId("detail-title").focus();
  body.replaceChildren();
  actions = element("div", null, body, "bar");
  showActions();
  poll();
  const told = known.index.get(keyOf(name, version));
  if (told && told.reason) element("p", told.reason, body, "problem");
  if (stateOf(name, version) !== "READY") {
    element("p", "It is not loaded, so it cannot be tried.", body, "hint");
    return;
  }
  const path = pathOf(name, version);
  if (!askable(path)) {
    element("p", "A browser cannot ask for a model of this name: it would write the name in another way. Other clients can.", body, "problem");
    return;
  }
  const [metadata, config] = await Promise.allSettled([askJson(path), askJson(`${path}/config`)]);
  if (mine !== choices) return;
  if (metadata.status === "fulfilled") {
    element("h3", "Try it", body);
    makeForm(body, { path, metadata: metadata.value, config: config.value || null, ask, say, left: leaving.signal });
  } else {
    element("p", metadata.reason.message, body, "problem");
  }
  element("h3", "Configuration", body);
  if (config.status === "fulfilled") showConfig(config.value, body);
  else element("p", config.reason.message, body, "problem");
};

// ---- recent errors: asked for when their number has changed, by whoever may see the log

const showErrors = (errors) => {
  byId("errors").hidden = !errors.length;
  byId("error-count").textContent = `${errors.length}`;
  byId("error-rows").replaceChildren(...errors.map(([last, first, times, kind, model, reason]) => {
    const line = document.createElement("tr"), when = element("td", new Date(last).toLocaleTimeString("en-GB"), line);
    when.title = times > 1 ? `${new Date(last).toLocaleString()}, for the first time ${new Date(first).toLocaleString()}` : new Date(last).toLocaleString();
    element("td", short(times), line);
    element("td", model || "–", line).title = model;
    element("td", kind === "load" ? `Not loaded: ${reason}` : reason, line);
    return line;
  }));
};
const lookAtErrors = async () => {
  const asked = keysTurn;
  errorsDue = false;
  try {
    showErrors((await askJson("/nereid/errors")).errors);
  } catch (error) {
    if (!error.status) {
      errorsDue = true;
      throw error;
    }
    if (asked === keysTurn) errorsAllowed = ![401, 403].includes(error.status);
    showErrors([]);
  }
};

// ---- looking again and again

let problemText = "";
const problem = (text) => {
  if (text === problemText) return;
  problemText = text;
  byId("problem").textContent = text;
  byId("problem").hidden = !text;
};
const lookAgain = async () => {
  const asked = keysTurn;
  indexDue = false;
  try {
    const index = await askJson("/v2/repository/index", { method: "POST", body: "{}" });
    known.index = new Map(index.map((each) => [keyOf(each.name, each.version || ""), each]));
    indexAllowed = true;
  } catch (error) {
    if (!error.status) {
      indexDue = lost = true;
      throw error;
    }
    if (asked === keysTurn) indexAllowed = ![401, 403].includes(error.status);
    known.index = new Map();
    throw error;
  } finally {
    arrange();
  }
};

let timer = 0, polling = false, again = false;
const poll = async () => {
  if (polling) {
    again = true; // for another model, or with another key
    return;
  }
  polling = true;
  clearTimeout(timer);
  let wait = PERIOD_MS;
  try {
    do {
      again = false;
      const asked = scope, numbers = await askJson(`/nereid/live${asked ? `?model=${encodeURIComponent(asked)}` : ""}`);
      if (asked === scope) take(numbers);
      else again = true;
    } while (again);
    if (indexDue && indexAllowed) await lookAgain().then(lookAtChosen, (error) => { if (!error.status) throw error; });
    if (errorsDue && errorsAllowed) await lookAtErrors();
    arrange();
    if (lost) problem("");
    lost = false;
    if (known.ready) showState("ready", "Ready");
    else showState("waiting", "Not ready: models are being loaded, or one is missing");
  } catch (error) {
    wait = error.status ? 5 * PERIOD_MS : PERIOD_MS;
    lost = true;
    showState("gone", error.status ? "No access" : error.message);
    if (error.status) problem(`${error.message}${[401, 403].includes(error.status) ? ". “Access key”, above, takes it." : ""}`);
  }
  polling = false;
  if (!document.hidden) timer = setTimeout(poll, wait);
};
let lost = false;

const askServer = async () => {
  try {
    const server = await askJson("/v2");
    byId("server-id").textContent = `${server.name} ${server.version}`;
    document.title = `${server.name} – Nereid`;
  } catch { /* who may see statistics need not be one who may see metadata */ }
};

// ---- the rest

const setTheme = (theme) => {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const chart of charts) chart.paint();
};
const openAccess = () => {
  for (const name of ["key", "header-name", "header-value"]) byId(name).value = keys.get(name);
  byId("access-dialog").returnValue = "";
  byId("access-dialog").showModal();
};
const closeAccess = () => {
  if (byId("access-dialog").returnValue !== "use") return;
  for (const name of ["key", "header-name", "header-value"]) keys.set(name, byId(name).value.trim());
  keysTurn++;
  indexAllowed = indexDue = errorsAllowed = errorsDue = true;
  problem("");
  askServer();
  poll();
};

const begin = () => {
  let theme = "auto";
  try { theme = localStorage.getItem("nereid-theme") || "auto"; } catch { /* nothing is kept */ }
  byId("theme").value = theme;
  makeCharts();
  setTheme(theme);
  makeHeads();
  byId("theme").addEventListener("change", () => {
    try { localStorage.setItem("nereid-theme", byId("theme").value); } catch { /* nothing is kept */ }
    setTheme(byId("theme").value);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(byId("theme").value));
  byId("filter").addEventListener("input", () => { byId("scroll").scrollTop = 0; arrange(); });
  byId("show").addEventListener("change", () => { byId("scroll").scrollTop = 0; arrange(); });
  byId("look").addEventListener("click", () => lookAgain().then(() => say(`${rows.length} models`), (error) => problem(error.message)));
  byId("scroll").addEventListener("scroll", () => requestAnimationFrame(paintRows), { passive: true });
  byId("rows").addEventListener("keydown", step);
  byId("all-models").addEventListener("click", () => { setScope(""); poll(); byId("now-title").focus(); });
  byId("access").addEventListener("click", openAccess);
  byId("access-dialog").addEventListener("close", closeAccess);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
  let resizing = 0;
  addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => { charts.forEach((chart) => chart.fit()); paintRows(); }, 100);
  });
  askServer();
  poll();
};
begin();

// The page of a Slipstick server: asks once a second what the boards do, and draws it.
"use strict";

const SIGNS = { idle: "○", working: "▶", failed: "✕" };
const SVG = "http://www.w3.org/2000/svg";
const POLL_MS = 1000;
const MARKED = 3;
const $ = (id) => document.getElementById(id);

let token = sessionStorage.getItem("slipstick-token") || "";
let status = null;
let profile = null;
let chosen = "";
let timer = 0;

function element(name, text = "", classes = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (classes) made.className = classes;
  return made;
}

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function number(value, digits = 1) {
  if (value === null || value === undefined) return "–";
  return value.toLocaleString("en", { maximumFractionDigits: value < 100 ? digits : 0 });
}

const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);

function span(seconds) {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

async function ask(place, options = {}) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch(place, { ...options, headers, cache: "no-store" });
  if (response.status === 401) {
    askForToken(token ? "This is not the server's token." : "This server wants a token.");
    throw new Error("a token is needed");
  }
  const value = await response.json();
  if (!response.ok) throw new Error(value.error || `status ${response.status}`);
  return value;
}

function askForToken(why) {
  $("ask-why").textContent = why;
  $("ask").hidden = false;
  $("content").hidden = true;
  $("token").focus();
  tellState("token needed");
}

function tellState(text) {
  if ($("state").textContent !== text) $("state").textContent = text;
}

async function poll() {
  clearTimeout(timer);
  try {
    status = await ask("page/status");
    $("ask").hidden = true;
    $("content").hidden = false;
    tellState(status.state === "ready" ? "✓ ready" : `! ${status.state}`);
    drawStatus();
    if (!profile) await choose($("chosen").value);
  } catch (error) {
    if ($("ask").hidden) tellState(`! the server does not answer (${error.message})`);
    else return;
  }
  if (!document.hidden) timer = setTimeout(poll, POLL_MS);
}

function drawStatus() {
  $("boards").replaceChildren(...status.boards.map(boardCard));
  drawLine("rate", status.history.images_per_second, 1);
  drawLine("queue", status.history.queue, 0);
  const rows = status.models.map((model) => row([
    `${model.name} v${model.version}`, number(model.images_per_second),
    number(model.latency_ms.p50, 2), number(model.latency_ms.p90, 2),
    number(model.latency_ms.p99, 2), `${model.queue} of ${status.queue_limit}`,
    number(model.requests), number(model.refused), number(model.retried),
  ]));
  $("models").tBodies[0].replaceChildren(...rows);
  const names = status.models.map((model) => `${model.name}/versions/${model.version}`);
  if ($("chosen").options.length !== names.length) {
    $("chosen").replaceChildren(...names.map((name, index) => {
      const option = element("option", `${status.models[index].name} v${status.models[index].version}`);
      option.value = name;
      return option;
    }));
  }
  $("footer").textContent =
    `Slipstick ${status.version}, up for ${span(status.uptime_seconds)}. Requests: /v2, figures: /metrics.`;
}

function boardCard(board, index) {
  const card = element("li", "", `state-${board.state}`);
  card.append(element("b", `${index + 1}. ${board.name}`));
  card.append(element("span", `${SIGNS[board.state]} ${board.state}`, "word"));
  card.append(element("div", `${number(board.images_per_second)} images/s`, "figure"));
  const able = board.rates.map((rate) => `${rate.model} ${number(rate.images_per_second)}/s`);
  const lines = [
    board.target,
    `${number(board.images)} images, ${board.in_flight} now`,
    able.length ? `alone it does: ${able.join(", ")}` : "",
    board.failures ? `failed ${board.failures} ${board.failures === 1 ? "time" : "times"}` : "",
  ];
  for (const line of lines.filter(Boolean)) card.append(element("small", line), element("br"));
  if (board.error) card.append(element("small", board.error, board.state === "failed" ? "error" : ""));
  return card;
}

function row(cells) {
  const made = element("tr");
  made.append(...cells.map((cell) => element("td", cell)));
  return made;
}

function drawLine(id, values, digits) {
  const most = Math.max(...values, 1);
  const length = 120;
  const points = values.map((value, index) => {
    const x = 600 - (600 * (values.length - 1 - index)) / length;
    return `${x.toFixed(1)},${(114 - (108 * value) / most).toFixed(1)}`;
  });
  const parts = [];
  if (points.length) {
    const first = points[0].split(",")[0];
    parts.push(shape("polygon", { points: `${first},120 ${points.join(" ")} 600,120` }));
    parts.push(shape("polyline", { points: points.join(" ") }));
  }
  $(id).replaceChildren(...parts);
  $(`${id}-now`).textContent = number(values.at(-1) || 0, digits);
  $(`${id}-most`).textContent = `most: ${number(Math.max(...values, 0), digits)}`;
}

async function choose(name) {
  chosen = name;
  profile = await ask(`page/models/${name}/profile`);
  $("result").replaceChildren();
  drawProfile();
  const model = status.models[$("chosen").selectedIndex];
  $("try").hidden = !model.picture;
  $("no-picture").hidden = Boolean(model.picture);
}

function heaviest() {
  return [...profile.layers].sort((one, other) => other.cycles - one.cycles).slice(0, MARKED);
}

function hatching() {
  // seen without colours too
  const pattern = shape("pattern", {
    id: "hatching", width: 12, height: 24, patternUnits: "userSpaceOnUse",
  });
  pattern.append(
    shape("rect", { width: 12, height: 24, class: "ground" }),
    shape("path", { d: "M-3 6L3 -6M0 24L12 0M9 30L15 18", class: "stripe" }),
  );
  const definitions = shape("defs", {});
  definitions.append(pattern);
  return definitions;
}

function drawProfile() {
  const total = profile.cycles || 1;
  $("summary").textContent =
    `${profile.network} on ${profile.array}: ${number(profile.cycles)} cycles, `
    + `${number(profile.milliseconds, 3)} ms at ${number(profile.clock_hz / 1e6)} MHz, `
    + `${number(profile.macs)} multiply-accumulates, ${percent(profile.utilisation)} of the array; predicted.`;
  $("timeline-end").textContent = `${number(profile.cycles)} cycles`;
  const marked = new Set(heaviest());
  const parts = [hatching()];
  for (const layer of profile.layers) {
    if (!layer.cycles) continue;
    const used = layer.utilisation;
    const height = Math.max(6, 200 * (used === null ? 0.06 : used));
    const rect = shape("rect", {
      x: (1000 * layer.begin) / total, width: (1000 * layer.cycles) / total,
      y: 220 - height, height,
      class: marked.has(layer) ? "marked" : used === null ? "other" : "used",
    });
    const title = shape("title", {});
    title.textContent = `${layer.name} (${layer.operator}): ${number(layer.cycles)} cycles, `
      + `${percent(layer.cycles / total)} of the time, array ${percent(used)}`;
    rect.append(title);
    parts.push(rect);
  }
  for (const y of [20, 120]) parts.push(shape("line", { x1: 0, x2: 1000, y1: y, y2: y }));
  $("timeline").replaceChildren(...parts);
  $("layers").tBodies[0].replaceChildren(...profile.layers.map((layer) => {
    const made = row([
      layer.name, layer.operator, layer.where, layer.cycles ? number(layer.cycles) : "–",
      layer.cycles ? percent(layer.cycles / total) : "–", percent(layer.utilisation),
    ]);
    made.cells[0].title = layer.name;
    made.cells[2].title = layer.why;
    return made;
  }));
}

function bar(name, share, text) {
  const made = element("div", "", "bar");
  const meter = element("meter");
  meter.max = 1;
  meter.value = Math.max(0, share);
  meter.textContent = text;
  const label = element("span", name);
  label.title = name;
  made.append(label, meter, element("span", text));
  return made;
}

async function classify(file) {
  if (!file) return;
  const preview = $("preview");
  if (preview.src) URL.revokeObjectURL(preview.src);
  preview.src = URL.createObjectURL(file);
  preview.alt = file.name;
  preview.hidden = false;
  const result = $("result");
  result.replaceChildren(element("p", "computing …"));
  try {
    const found = await ask(`page/models/${chosen}/picture`, { method: "POST", body: file });
    const scores = found.classes.map((each) => each.score);
    const most = Math.max(...scores, 1e-9);
    result.replaceChildren(
      element("h3", `Classes of ${found.output}, in ${number(found.milliseconds, 2)} ms`),
      ...found.classes.map((each) => bar(`class ${each.class}`, each.score / most, each.score.toPrecision(3))),
      element("h3", `Where ${number(profile.cycles)} cycles went`),
      ...heaviest().map((layer) => bar(
        `${layer.name} (${layer.operator})`, layer.cycles / profile.cycles, percent(layer.cycles / profile.cycles))),
      bar("all others", 1 - heaviest().reduce((sum, layer) => sum + layer.cycles, 0) / profile.cycles,
        percent(1 - heaviest().reduce((sum, layer) => sum + layer.cycles, 0) / profile.cycles)),
    );
  } catch (error) {
    result.replaceChildren(element("p", error.message, "error"));
  }
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  sessionStorage.setItem("slipstick-token", token);
  poll();
});
$("chosen").addEventListener("change", (event) => choose(event.target.value).catch(() => poll()));
$("file").addEventListener("change", (event) => classify(event.target.files[0]));
for (const name of ["dragenter", "dragover"]) {
  $("drop").addEventListener(name, (event) => {
    event.preventDefault();
    $("drop").classList.add("over");
  });
}
$("drop").addEventListener("dragleave", () => $("drop").classList.remove("over"));
$("drop").addEventListener("drop", (event) => {
  event.preventDefault();
  $("drop").classList.remove("over");
  classify(event.dataTransfer.files[0]);
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
poll();

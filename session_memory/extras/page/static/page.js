// What the page does in the browser: keys, live updates, parts that are loaded when they come into view, the palette.
// Everything is reached by links and forms as well; nothing is asked of any other host.
"use strict";
const root = document.body.dataset.root;
const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

async function part(address) {
  const answer = await fetch(address, { headers: { "X-Part": "1" } });
  const found = new DOMParser().parseFromString(await answer.text(), "text/html").body;
  if (!answer.ok && !$(".state", found)) throw new Error(answer.status);
  return found;
}

// Puts what is new in place of what was: by data-key, so that what has not changed stays as it is, opened, selected, focused.
const sources = new WeakMap();
function replace(old, found) {
  const source = found.innerHTML;
  if (sources.get(old) === source) return;
  const before = new Map([...old.children].filter((one) => one.dataset.key).map((one) => [one.dataset.key, one]));
  const next = [...found.childNodes].map((one) => {
    if (!one.dataset) return one;
    const known = before.get(one.dataset.key);
    if (!known) { remember(one); return one; }
    const html = one.outerHTML;
    if (sources.get(known) === html) return known;
    if (one.dataset.inner) { sources.set(known, html); replace(known, one); return known; }
    remember(one);
    for (const opened of $$("details[open][id]", known)) {
      const same = one.querySelector(`details[id="${CSS.escape(opened.id)}"]`);
      if (same) same.open = true;
    }
    for (const box of $$("input[type=checkbox]:checked", known)) {
      const same = one.querySelector(`input[type=checkbox][value="${CSS.escape(box.value)}"]`);
      if (same) same.checked = true;
    }
    return one;
  });
  const focused = document.activeElement && document.activeElement.id;
  old.replaceChildren(...next);
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
  sources.set(old, source);
}
function remember(within) {
  for (const one of [within, ...$$("[data-key]", within)]) {
    if (one.dataset?.key && !sources.has(one)) sources.set(one, one.outerHTML);
  }
}

// Live: the server says that something is new, and what is shown is asked for again, never twice at once.
const RETRY_MILLISECONDS = 2000;
let isAsking = false, isStale = false;
async function refresh() {
  isStale = true;
  if (isAsking || document.hidden) return;
  isAsking = true;
  let hasFailed = false;
  while (isStale) {
    isStale = false;
    for (const shown of $$("[data-live]")) {
      try {
        const address = shown.dataset.live || location.href;
        const found = await part(address);
        const fresh = shown.id ? found.querySelector(`[id="${shown.id}"]`) : null;
        if (fresh) replace(shown, fresh); else if ($(".state", found) || shown.matches(".state")) location.reload();
      } catch { hasFailed = true; }
    }
    dispatchEvent(new Event("refreshed"));
    prepare(document);
  }
  isAsking = false;
  if (hasFailed) setTimeout(refresh, RETRY_MILLISECONDS);
}
function listen() {
  if (!$("[data-live]")) return;
  const source = new EventSource(`${root}/changes`);
  let known = document.body.dataset.version;
  source.onmessage = ({ data }) => { if (data !== known) { known = data; refresh(); } };
  source.onopen = () => document.body.classList.remove("offline");
  source.onerror = () => document.body.classList.add("offline");
  addEventListener("pagehide", () => source.close());
  document.addEventListener("visibilitychange", () => { if (isStale) refresh(); });
}

// Parts that are loaded when they come near, or when what they are in is opened.
const near = new IntersectionObserver((seen) => {
  for (const one of seen) if (one.isIntersecting) { near.unobserve(one.target); load(one.target); }
}, { rootMargin: "1500px" });
async function load(one) {
  const address = one.dataset.load;
  if (!address) return;
  delete one.dataset.load;
  try {
    const found = await part(address);
    prepare(found);
    one.replaceChildren(...found.childNodes);
    one.removeAttribute("aria-busy");
  } catch { one.dataset.load = address; one.textContent = "This could not be loaded. It is loaded again when it is next shown."; }
}
function prepare(within) {
  sortable(within);
  for (const one of $$("[data-load]", within)) {
    const folded = one.closest("details");
    if (folded && !folded.open) folded.addEventListener("toggle", () => load(one), { once: true });
    else near.observe(one);
  }
}

// Tables are sorted by a click on a head: by numbers from the highest, by words from the first, by nothing last. A live one stays sorted.
const units = { k: 1e3, M: 1e6, G: 1e9 };
function sortKey(row, at) {
  const cell = row.cells[at], time = cell && $("time", cell);
  if (!cell) return "";
  if (cell.dataset.value || time) return cell.dataset.value ? Number(cell.dataset.value) : Date.parse(time.dateTime);
  const text = cell.innerText.trim(), number = /^[$]?([\d,]*\.?\d+)\s?([kMG])?(?![\w:-])/.exec(text);
  return number ? Number(number[1].replaceAll(",", "")) * (units[number[2]] || 1) : cell.matches(".number") ? -1 : text.toLowerCase();
}
function sortRows(head) {
  const table = head.closest("table"), at = head.cellIndex, way = head.ariaSort === "ascending" ? 1 : -1;
  const rows = table.tBodies.length > 1 ? [...table.tBodies] : [...table.tBodies[0].rows];
  const keyed = rows.map((one) => [sortKey(one.rows ? one.rows[0] : one, at), one]);
  keyed.sort(([a], [b]) => (a === "") - (b === "") || way * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))));
  rows[0].parentNode.append(...keyed.map(([, one]) => one));
}
function sortable(within) {
  for (const head of $$("table:not(.prose table) > thead th", within)) {
    if (!head.innerText.trim() || $("*", head)) continue;
    const button = document.createElement("button");
    button.className = "sort";
    button.title = "Sort by this column";
    button.append(...head.childNodes);
    head.append(button);
  }
}
function sortBy(head) {
  const isDown = head.ariaSort === null ? head.matches(".number") || !!$("time", head.closest("table").tBodies[0].rows[0]?.cells[head.cellIndex]) : head.ariaSort === "ascending";
  for (const one of head.parentNode.cells) one.ariaSort = null;
  head.ariaSort = isDown ? "descending" : "ascending";
  sortRows(head);
}
addEventListener("refreshed", () => { for (const head of $$("main th[aria-sort]")) sortRows(head); });

function ages() {
  for (const one of $$("time[data-ago]")) {
    const seconds = (Date.now() - Date.parse(one.dateTime)) / 1000;
    one.textContent = seconds < 60 ? "just now" : seconds < 3600 ? `${Math.floor(seconds / 60)}m ago`
      : seconds < 86400 ? `${Math.floor(seconds / 3600)}h ago` : `${Math.floor(seconds / 86400)}d ago`;
  }
}

function say(text) {
  const line = $("#said");
  line.textContent = text;
  setTimeout(() => { if (line.textContent === text) line.textContent = ""; }, 2500);
}
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("theme", theme); } catch {}
}
function otherTheme() {
  const now = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  setTheme(now === "dark" ? "light" : "dark");
}

// The palette: sessions, views and the search by a few letters.
const palette = $("#palette");
let paletteAsked = 0;
function openPalette() {
  if (!palette.open) palette.showModal();
  $("input", palette).select();
  fillPalette();
}
async function fillPalette() {
  const asked = ++paletteAsked;
  const found = await part(`${root}/palette?${new URLSearchParams(new FormData($("form", palette)))}`);
  if (asked !== paletteAsked) return;
  $("#found").replaceChildren(...found.childNodes);
  choose($$("#found a")[0]);
}
function choose(link) {
  for (const one of $$("#found a")) one.toggleAttribute("aria-current", one === link);
  link?.scrollIntoView({ block: "nearest" });
}

// Keys. Within a list j and k go from one thing to the next; Enter opens it.
const steps = () => $$("main [data-step]").filter((one) => one.offsetParent);
function step(by) {
  const all = steps();
  const at = all.findIndex((one) => one === document.activeElement || one.contains(document.activeElement));
  const top = all.findIndex((one) => one.getBoundingClientRect().top > 60);
  const next = all[at < 0 ? Math.max(top, 0) : Math.min(Math.max(at + by, 0), all.length - 1)];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "start", behavior: "instant" });
}
function toSearch() {
  const field = $("form[data-typed] input[type=search]");
  field?.focus();
  if (field) scrollTo(0, 0);
}
let isGoing = false;
function key(event) {
  if (event.key === "Escape" && event.target.matches("input[type=search]")) event.preventDefault(); // it would empty the field
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); return openPalette(); }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  if (event.key === "Enter" && event.target.matches("[data-step]")) {
    if (event.target.matches("details")) event.target.open = !event.target.open; else $("[data-opens]", event.target)?.click();
  }
  if (event.target.closest(".results") && ["ArrowDown", "ArrowUp", "Escape"].includes(event.key)) {
    event.preventDefault();
    const isFirst = steps()[0]?.contains(event.target);
    return event.key === "ArrowDown" ? step(1) : event.key === "ArrowUp" && !isFirst ? step(-1) : toSearch();
  }
  const went = isGoing && $(`nav a[data-go="${CSS.escape(event.key)}"]`);
  isGoing = event.key === "g" && !isGoing;
  if (went) return void (location.href = went.href);
  const done = {
    "?": () => $("#keys").showModal(), "/": openPalette, t: otherTheme, j: () => step(1), k: () => step(-1),
    x: () => document.activeElement?.closest("[data-step]")?.querySelector("input[type=checkbox]")?.click(),
    m: () => document.body.classList.toggle("with-list"),
    o: () => { const one = document.activeElement?.closest("[data-step]"); const fold = one && ($("details", one) || one.closest("details")); if (fold) fold.open = !fold.open; },
  }[event.key];
  const marked = $$(`[data-shortcut="${CSS.escape(event.key)}"]`).find((one) => one.offsetParent);
  if (done || marked) { event.preventDefault(); done ? done() : marked.click(); }
}

// Forms that show what they find while one types or chooses: only the last answer counts.
for (const form of $$("form[data-typed]")) {
  let asked = 0, timer = 0;
  const ask = async () => {
    const mine = ++asked, shown = document.getElementById(form.dataset.typed);
    const given = [...new FormData(form)].filter(([, value]) => value);
    const address = `${form.action}?${new URLSearchParams(given)}`;
    history.replaceState(null, "", address);
    shown.setAttribute("aria-busy", "true");
    const found = await part(address).catch(() => null);
    const fresh = found?.querySelector(`[id="${shown.id}"]`);
    if (mine !== asked) return;
    shown.removeAttribute("aria-busy");
    if (!fresh) return void location.reload();
    if (fresh.dataset.live) shown.dataset.live = fresh.dataset.live;
    replace(shown, fresh);
    dispatchEvent(new Event("refreshed"));
    prepare(shown);
    if ("soon" in fresh.dataset) refresh();
  };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 60); });
  const toFound = () => $("[data-step]", document.getElementById(form.dataset.typed))?.focus();
  form.addEventListener("submit", async (event) => { event.preventDefault(); clearTimeout(timer); await ask(); toFound(); });
  form.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && event.target.matches("input")) { event.preventDefault(); toFound(); }
  });
}
for (const one of $$("[data-all]")) one.addEventListener("change", () => { for (const box of $$("tbody input[type=checkbox]", one.closest("table"))) box.checked = one.checked; });
for (const one of $$("form[data-chosen]")) one.addEventListener("change", () => one.requestSubmit());

document.addEventListener("keydown", key);
document.addEventListener("click", async (event) => {
  const { day, span } = event.target.dataset, head = event.target.closest("button.sort")?.parentNode;
  if (day) location.href = `${root}/timeline?${new URLSearchParams({ day, span: span || "day" })}`;
  if (head) sortBy(head);
  const on = event.target.closest("[data-do]");
  if (!on) return;
  const copied = on.dataset.copy;
  if (on.dataset.do === "copy") { await navigator.clipboard.writeText(copied); say(`copied: ${copied}`); }
  if (on.dataset.do === "theme") otherTheme();
  if (on.dataset.do === "keys") $("#keys").showModal();
  if (on.dataset.do === "palette") openPalette();
  if (on.dataset.do === "list") document.body.classList.toggle("with-list");
  if (on.dataset.do === "close") on.closest("dialog").close();
  if (on.dataset.do === "unfold") for (const one of $$("main details.tool")) {
    const { top, bottom } = one.getBoundingClientRect();
    if (bottom > 0 && top < 2 * innerHeight) one.open = on.ariaPressed !== "true";
  }
  if (on.ariaPressed) on.ariaPressed = on.ariaPressed !== "true";
});
palette.addEventListener("input", fillPalette);
$("form", palette).addEventListener("submit", (event) => event.preventDefault());
palette.addEventListener("keydown", (event) => {
  const all = $$("#found a"), at = all.findIndex((one) => one.hasAttribute("aria-current"));
  const next = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
  if (event.key === "Escape") { event.preventDefault(); palette.close(); } // which would empty the field first
  if (event.target.matches("select")) return;
  if (next !== undefined && all.length) { event.preventDefault(); choose(all[(next + all.length) % all.length]); }
  if (event.key === "Enter" && all[at]) { event.preventDefault(); location.href = all[at].href; }
});
for (const one of $$("dialog")) one.addEventListener("click", (event) => { if (event.target === one) one.close(); });
// A form of a row: what it changes is shown without leaving the page, and the focus goes to the next row.
let focusAt = -1;
addEventListener("refreshed", () => {
  if (focusAt < 0 || document.activeElement !== document.body) return;
  const all = steps();
  (all[Math.min(focusAt, all.length - 1)] || $("main")).focus({ preventScroll: true });
  focusAt = -1;
});
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!("stay" in form.dataset)) return;
  event.preventDefault();
  focusAt = Math.max(0, steps().findIndex((one) => one.contains(form)));
  const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual" }).catch(() => null);
  if (!answer || answer.status >= 400) return void location.reload();
  refresh();
});

remember(document);
prepare(document);
listen();
if ($("[data-soon]")) refresh();
setInterval(ages, 20000);

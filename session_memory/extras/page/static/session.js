// A session: going to an entry that is not loaded yet, from request to request, following live, and what is new to the reader.
"use strict";
const page = $("[data-session]");
const seenKey = `seen:${page.dataset.session}`;
let seen = 0;
try { seen = Number(localStorage.getItem(seenKey)) || 0; } catch {}

async function goTo(number, isSmooth) {
  const chunk = $$(".chunk").find((one) => number >= one.dataset.first && number <= one.dataset.last) || $$(".chunk").at(-1);
  if (chunk?.dataset.load) { near.unobserve(chunk); await load(chunk); }
  const call = document.getElementById(`d${number}`);
  const entry = document.getElementById(`e${number}`) || call;
  if (!entry) return;
  if (call) call.open = true;
  follows = false;
  entry.scrollIntoView({ block: "start", behavior: isSmooth ? "smooth" : "instant" });
  entry.classList.add("fresh");
  (entry.matches("[tabindex]") ? entry : $("summary", entry))?.focus({ preventScroll: true });
}
function mark() {
  const numbers = $$("[data-number]", page);
  if (seen) numbers.find((one) => Number(one.dataset.number) > seen)?.classList.add("first-new");
}
let noting = 0; // not while one leaves: where everything is measured just then, the next page waits for it
function noteSeen() {
  clearTimeout(noting);
  noting = setTimeout(() => {
    const last = $$("[data-number]", page).findLast((one) => one.getBoundingClientRect().top < innerHeight);
    try { if (last) localStorage.setItem(seenKey, Math.max(seen, Number(last.dataset.number))); } catch {}
  }, 250);
}
function toRequest(by) {
  const all = $$(".request", page), line = 80;
  const next = by > 0 ? all.find((one) => one.getBoundingClientRect().top > line + 2)
    : all.filter((one) => one.getBoundingClientRect().top < line - 10).at(-1);
  next?.scrollIntoView({ block: "start", behavior: "instant" });
  next?.focus({ preventScroll: true });
}
// The outline has the requests as of when it was loaded: when one more comes into the part that is live, it is loaded anew.
let latestRequest = null;
function renewOutline() {
  const live = $(".chunk[data-live]", page), outline = $(".outline");
  if (!live) return;
  const latest = Number($$(".request", live).at(-1)?.dataset.number || 0), isNew = latestRequest !== null && latest > latestRequest;
  latestRequest = latest;
  if (!isNew || outline.dataset.load) return;
  outline.dataset.load = outline.dataset.from;
  load(outline);
}
const isAtEnd = () => innerHeight + scrollY > document.documentElement.scrollHeight - 160;
const toEnd = () => scrollTo(0, document.documentElement.scrollHeight);
// A reader who scrolls up follows no more. What loads above may move the page up too, but no hand did that just before.
const HAND_SECONDS = 3;
let follows = false, lastY = 0, lastHand = -Infinity;
for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"])
  addEventListener(kind, () => { lastHand = performance.now(); }, { passive: true, capture: true });
addEventListener("scroll", () => {
  const isByHand = performance.now() - lastHand < HAND_SECONDS * 1000;
  if (isAtEnd()) follows = true; else if (isByHand && scrollY < lastY - 2) follows = false;
  lastY = scrollY;
}, { passive: true });
new ResizeObserver(() => { if (follows) toEnd(); }).observe($("#dialogue"));
new MutationObserver(() => {
  for (const one of $$("[data-live-later]:not([data-load])")) { one.dataset.live = one.dataset.liveLater; delete one.dataset.liveLater; remember(one); }
  mark();
  renewOutline();
}).observe($("#dialogue"), { childList: true, subtree: true });

page.addEventListener("click", (event) => {
  const to = event.target.closest("a[data-to]");
  if (!to || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  history.replaceState(null, "", to.href);
  goTo(Number(to.dataset.to), false);
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog") || isGoing) return;
  const done = {
    n: () => toRequest(1), p: () => toRequest(-1),
    e: toEnd, b: () => scrollTo(0, 0),
  }[event.key];
  if (done) { event.preventDefault(); done(); }
});
addEventListener("scroll", noteSeen, { passive: true });
addEventListener("refreshed", noteSeen);
mark();
renewOutline();
noteSeen();
if (Number(page.dataset.at)) goTo(Number(page.dataset.at), false);
else if ("follows" in page.dataset) {
  history.scrollRestoration = "manual"; // else a page that was loaded again goes back to where it was before it followed
  follows = true;
  toEnd();
}

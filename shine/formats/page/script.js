"use strict";
// The page is complete without this script, which adds tooltips and copying, and unfolds folded parts for print.
const tip = document.getElementById("tip");
let shown = null;

function show(target, content, x, y) {
  shown = target;
  tip.replaceChildren(...content);
  tip.hidden = false;
  const edge = 12, page = document.documentElement;
  const left = Math.min(x + edge, page.clientWidth - tip.offsetWidth - edge);
  const above = y - tip.offsetHeight - edge;
  tip.style.left = `${Math.max(edge, left) + scrollX}px`;
  tip.style.top = `${(above > edge ? above : y + 2 * edge) + scrollY}px`;
}

function hide() {
  shown = null;
  tip.hidden = true;
}

function told(text) {
  const line = document.createElement("div");
  line.className = "told";
  line.textContent = text;
  return line;
}

function content(target) {
  if (target.dataset.exact) return [told(target.dataset.exact)];
  const row = document.getElementById(target.dataset.row);
  const figures = [...row.querySelectorAll("td.number")].map((cell) => `${cell.dataset.label} ${cell.textContent}`);
  return [told(figures.join(" · ")), row.querySelector(".formula").cloneNode(true)];
}

function tell(event) {
  const target = event.target.closest?.("[data-row], [data-exact]");
  if (!target || target.closest("#tip")) return hide();
  if (target === shown) return;
  const box = target.getBoundingClientRect();
  show(target, content(target), (box.left + box.right) / 2, box.top);
}

function prepare(part) {
  // A drawing wider than its card begins with its root in view.
  for (const drawing of part.querySelectorAll("[data-root]")) {
    const card = drawing.parentElement;
    card.scrollLeft = drawing.dataset.root * card.scrollWidth - card.clientWidth / 2;
  }
  for (const title of part.querySelectorAll("[data-row] > title")) title.remove();
}

prepare(document);
document.addEventListener("pointerover", tell);
document.addEventListener("focusin", tell);
document.addEventListener("keydown", (event) => event.key === "Escape" && hide());

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button.copy");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Select and copy";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});

addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});

// The page of a search that runs: parts of the report come as messages, and what the user wants goes back.
(() => {
  const token = new URLSearchParams(location.search).get("token");
  const at = (id) => document.getElementById(id);
  const controls = at("controls"), state = at("state"), pause = at("pause"), stop = at("stop");
  const formula = at("formula"), put = at("put"), answer = at("answer");
  const kept = new Map();
  let paused = false, ended = false, sure = null;

  function reading(part) {
    const selection = getSelection();
    return selection.type === "Range" && part.contains(selection.anchorNode);
  }

  function replace(name, html) {
    const part = at(`part-${name}`);
    if (!part) return;
    // Text that the user has selected stays until they are done.
    if (reading(part)) return kept.set(name, html);
    kept.delete(name);
    const open = [...part.querySelectorAll("details[open] code")].map((code) => code.id);
    part.innerHTML = html;
    for (const id of open) at(id)?.closest("details")?.setAttribute("open", "");
    prepare(part);
    for (const copy of ended ? [] : part.querySelectorAll("button.copy")) {
      const edit = document.createElement("button");
      edit.type = "button";
      edit.className = "edit";
      edit.dataset.edit = copy.dataset.copy;
      edit.textContent = "Edit";
      copy.after(" ", edit);
    }
  }

  function tell(text, wrong) {
    answer.textContent = text;
    answer.className = wrong ? "wrong" : "";
  }

  function show(status) {
    ended = status.state === "ended";
    paused = status.state === "paused";
    controls.className = `card controls ${status.state}`;
    state.textContent = status.text;
    pause.textContent = paused ? "Go on" : "Pause";
    formula.placeholder = status.example ?? "";
    formula.title = status.hint ?? "";
    for (const each of [pause, stop, put, formula]) each.disabled = ended;
    if (ended) tell("");
  }

  async function ask(action, values = {}) {
    const headers = { "Content-Type": "application/json", "X-Shine-Token": token };
    const response = await fetch(action, { method: "POST", headers, body: JSON.stringify(values) });
    if (response.ok) return response.json();
    const body = await response.text();
    throw new Error(body ? JSON.parse(body).error : `the server refuses this (${response.status})`);
  }

  async function act(action, values) {
    try {
      const told = await ask(action, values);
      tell(told.text ?? "");
      return true;
    } catch (error) {
      tell(error instanceof TypeError ? "The search does not answer." : error.message, true);
      return false;
    }
  }

  async function putIn() {
    if (formula.value.trim() && await act("formula", { formula: formula.value })) formula.value = "";
  }

  pause.addEventListener("click", () => act("pause", { paused: !paused }));
  stop.addEventListener("click", () => {
    // A click by mistake must not end a long search.
    if (sure) return act("stop");
    stop.textContent = "Stop now?";
    sure = setTimeout(() => { stop.textContent = "Stop"; sure = null; }, 3000);
  });
  put.addEventListener("click", putIn);
  formula.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    putIn();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button.edit");
    if (!button) return;
    formula.value = at(button.dataset.edit).textContent;
    formula.focus();
  });
  document.addEventListener("selectionchange", () => {
    for (const [name, html] of kept) replace(name, html);
  });

  const source = new EventSource(`events?token=${encodeURIComponent(token)}`);
  source.onmessage = (event) => {
    const { parts, status } = JSON.parse(event.data);
    show(status);
    for (const [name, html] of Object.entries(parts)) replace(name, html);
    if (ended) source.close();
  };
  source.onerror = () => {
    if (ended) return;
    controls.className = "card controls lost";
    state.textContent = "The search has ended, or its process does not answer. This is what it told last.";
    for (const each of [pause, stop, put, formula]) each.disabled = true;
  };
})();
